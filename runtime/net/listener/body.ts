/**
 * Reads a request body into memory, at most `maxBytes`.
 *
 * Too large by declaration or by count: REQUEST_TOO_LARGE, thrown before anything is forwarded. Cut short or
 * malformed: BAD_REQUEST. The response to a body that is too large says `Connection: close`, and the listener closes the
 * connection in stages, so that the client gets to read it. Framing itself (conflicting lengths, bad chunks) is refused
 * by the HTTP parser, see listen.ts.
 *
 * What bodies of all requests hold together is bounded as well, see ../load/body-memory.ts: OVERLOADED.
 *
 * Coded bodies are refused, because what is checked must be what the next server reads: a content coding is
 * UNSUPPORTED_MEDIA_TYPE, a transfer coding other than chunked NOT_IMPLEMENTED.
 * Source: reference limits of docs/reference/specification/proxy-command.md#limits ("Limits"); RFC 9110 sections 15.5.14 and 15.5.16, RFC 9112 sections 6.1
 * and 9.6.
 */
import type { ServerResponse } from 'node:http'
import { GatehouseError } from '../../../schemas/index.ts'
import { codingOf } from '../content-coding.ts'
import type { Exchange } from '../pipeline.ts'
import { maxBodyBytes } from '../limits.ts'
import { type BodyMemory, type HeldBody, smallBodyBytes } from '../load/body-memory.ts'
import { Pieces } from '../pieces.ts'

const empty: Buffer = Buffer.alloc(0)

export interface BodyOptions {
  readonly maxBytes?: number
  /** Where bodies of more than a few kilobytes are counted. */
  readonly memory?: BodyMemory
}

/**
 * Fills `exchange.body`. Returns without a promise when the request has no body.
 * Throws, or rejects with, BAD_REQUEST, OVERLOADED or what `refuseBodyByHead` throws.
 */
export function readBody(exchange: Exchange, options: BodyOptions = {}): void | Promise<void> {
  const { maxBytes = maxBodyBytes, memory } = options
  const { req, res } = exchange
  const { headers } = req
  if (headers['content-length'] === undefined && headers['transfer-encoding'] === undefined) {
    exchange.body = empty
    return
  }
  refuseBodyByHead(exchange, maxBytes)
  // The client gets permission to send the body only now: a refused request never sends it.
  if (headers.expect?.toLowerCase() === '100-continue' && !res.headersSent) res.writeContinue()

  const { promise, resolve, reject } = Promise.withResolvers<void>()
  let pieces = new Pieces()
  let held: HeldBody | undefined
  let counted = 0
  let isOver = false

  function refuse(error: unknown): void {
    isOver = true
    pieces = new Pieces()
    // The rest of the body is not read.
    res.shouldKeepAlive = false
    reject(error)
  }

  function onData(chunk: Buffer): void {
    if (isOver) return
    pieces.add(chunk)
    if (pieces.size > maxBytes) return refuse(tooLarge(res))
    if (!memory || pieces.size - counted <= smallBodyBytes) return
    try {
      held ??= memory.begin(exchange, refuse)
      memory.take(held, pieces.size - counted)
      counted = pieces.size
    } catch (error) {
      refuse(error)
    }
  }

  function onEnd(): void {
    if (isOver) return
    if (!req.readableEnded)
      return refuse(
        new GatehouseError('BAD_REQUEST', { detail: 'the request body did not arrive completely' }),
      )
    isOver = true
    if (held) memory?.arrived(held)
    exchange.body = pieces.whole()
    resolve()
  }

  // The listeners stay, because removing them costs as much as adding them. Node emits only 'close' for a request that
  // was cut.
  req.on('data', onData)
  req.on('end', onEnd)
  req.on('close', onEnd)
  return promise
}

/**
 * Refuses a body by its head alone; for the stage that runs before authentication. Throws REQUEST_TOO_LARGE,
 * UNSUPPORTED_MEDIA_TYPE, NOT_IMPLEMENTED or BAD_REQUEST.
 */
export function refuseBodyByHead({ req, res }: Exchange, maxBytes: number = maxBodyBytes): void {
  const { headers } = req
  const declared = headers['content-length']
  if (declared !== undefined && Number(declared) > maxBytes) throw tooLarge(res)
  const transfer = headers['transfer-encoding']
  if (declared === undefined && transfer === undefined) return
  if (transfer !== undefined) checkTransfer(transfer)
  if (headers['content-encoding'] === undefined || codingOf(headers) === undefined) return
  throw new GatehouseError('UNSUPPORTED_MEDIA_TYPE', {
    detail: 'a compressed request body is not supported: send it without Content-Encoding',
    headers: { 'Accept-Encoding': 'identity' },
  })
}

/** Without chunked at its end the length of a request cannot be known. */
function checkTransfer(codings: string): void {
  const final = codings.toLowerCase().split(',').at(-1)?.trim()
  if (final !== 'chunked') throw new GatehouseError('BAD_REQUEST')
  if (codings.trim().length === final.length) return
  const detail = 'a transfer coding other than chunked is not supported'
  throw new GatehouseError('NOT_IMPLEMENTED', { detail })
}

/** What is left of the body is never a request: no further one can be read from this connection. */
function tooLarge(res: ServerResponse): GatehouseError {
  res.shouldKeepAlive = false
  return new GatehouseError('REQUEST_TOO_LARGE')
}
