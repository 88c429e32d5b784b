/**
 * Reads a request body of at most `maxBytes` into memory.
 *
 * A body that is too large, by its declared or actual length, fails with REQUEST_TOO_LARGE before anything is
 * forwarded. A truncated or malformed body fails with BAD_REQUEST. The response to an oversized body contains
 * `Connection: close`. The listener closes the connection in stages, which lets the client read the response. The HTTP
 * parser rejects invalid framing (conflicting lengths, bad chunks); see listen.ts.
 *
 * The total memory for all request bodies is also limited (error OVERLOADED; see ../load/body-memory.ts).
 *
 * Encoded bodies are rejected, because Gatehouse must check the exact bytes that the next server reads. A content
 * coding fails with UNSUPPORTED_MEDIA_TYPE, and any transfer coding except chunked fails with NOT_IMPLEMENTED.
 * Source: docs/reference/specification/proxy-command.md#limits ("Limits"); RFC 9110 sections 15.5.14 and 15.5.16, RFC
 * 9112 sections 6.1 and 9.6.
 */
import type { ServerResponse } from 'node:http'
import { GatehouseError } from '../../../schemas/index.ts'
import { codingOf } from '../content-coding.ts'
import type { Exchange } from '../pipeline.ts'
import { maxBodyBytes } from '../limits.ts'
import { type BodyMemory, type TrackedBody, smallBodyBytes } from '../load/body-memory.ts'
import { Pieces } from '../pieces.ts'

const empty: Buffer = Buffer.alloc(0)

export interface BodyOptions {
  readonly maxBytes?: number
  /** Shared memory budget for bodies above a few kilobytes. */
  readonly memory?: BodyMemory
}

/**
 * Sets `exchange.body`. Returns undefined instead of a promise if the request has no body. Throws or rejects with
 * BAD_REQUEST, OVERLOADED or an error from `rejectBodyByHeaders`.
 */
export function readBody(exchange: Exchange, options: BodyOptions = {}): void | Promise<void> {
  const { maxBytes = maxBodyBytes, memory } = options
  const { req, res } = exchange
  const { headers } = req
  if (headers['content-length'] === undefined && headers['transfer-encoding'] === undefined) {
    exchange.body = empty
    return
  }
  rejectBodyByHeaders(exchange, maxBytes)
  // Requests the body only at this point, because a rejected request needs no body.
  if (headers.expect?.toLowerCase() === '100-continue' && !res.headersSent) res.writeContinue()

  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const declared = Number(headers['content-length'])
  /** A body that has arrived in one chunk, as most bodies do. */
  let whole: Buffer | undefined
  let pieces: Pieces | undefined
  let size = 0
  let tracked: TrackedBody | undefined
  let counted = 0
  let isOver = false

  function fail(error: unknown): void {
    isOver = true
    whole = undefined
    pieces = undefined
    // Discards the rest of the body.
    res.shouldKeepAlive = false
    reject(error)
  }

  function onData(chunk: Buffer): void {
    if (isOver) return
    size += chunk.length
    if (size > maxBytes) return fail(tooLarge(res))
    if (chunk.length === declared) whole = chunk
    else (pieces ??= new Pieces()).add(chunk)
    if (!memory || size - counted <= smallBodyBytes) return
    try {
      tracked ??= memory.begin(exchange, fail)
      memory.take(tracked, size - counted)
      counted = size
    } catch (error) {
      fail(error)
    }
  }

  function onEnd(): void {
    if (isOver) return
    if (!req.readableEnded)
      return fail(new GatehouseError('BAD_REQUEST', { detail: 'the request body is incomplete' }))
    isOver = true
    if (tracked) memory?.arrived(tracked)
    exchange.body = whole ?? pieces?.whole() ?? empty
    resolve()
  }

  // Keeps the listeners, because removing listeners costs as much as adding them. For a truncated request, Node emits
  // only 'close'.
  req.on('data', onData)
  req.on('end', onEnd)
  req.on('close', onEnd)
  return promise
}

/**
 * Rejects a body based on the request headers, before authentication. Throws REQUEST_TOO_LARGE, UNSUPPORTED_MEDIA_TYPE,
 * NOT_IMPLEMENTED or BAD_REQUEST.
 */
export function rejectBodyByHeaders({ req, res }: Exchange, maxBytes: number = maxBodyBytes): void {
  const { headers } = req
  const declared = headers['content-length']
  if (declared !== undefined && Number(declared) > maxBytes) throw tooLarge(res)
  const transfer = headers['transfer-encoding']
  if (declared === undefined && transfer === undefined) return
  if (transfer !== undefined) checkTransfer(transfer)
  if (headers['content-encoding'] === undefined || codingOf(headers) === undefined) return
  throw new GatehouseError('UNSUPPORTED_MEDIA_TYPE', {
    detail: 'compressed request bodies are not supported; send the body without Content-Encoding',
    headers: { 'Accept-Encoding': 'identity' },
  })
}

/** Checks a request's transfer codings. The length of a request is known only if `chunked` is the last coding. */
function checkTransfer(codings: string): void {
  const final = codings.toLowerCase().split(',').at(-1)?.trim()
  if (final !== 'chunked') throw new GatehouseError('BAD_REQUEST')
  if (codings.trim().length === final.length) return
  const detail = 'transfer codings other than chunked are not supported'
  throw new GatehouseError('NOT_IMPLEMENTED', { detail })
}

/**
 * Returns the error and marks the connection for closing, because the unread rest of the body must not be parsed as a
 * request.
 */
function tooLarge(res: ServerResponse): GatehouseError {
  res.shouldKeepAlive = false
  return new GatehouseError('REQUEST_TOO_LARGE')
}
