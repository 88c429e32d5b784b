/**
 * Reads a request body into memory, at most `maxBytes`.
 *
 * Too large by declaration or by count: REQUEST_TOO_LARGE, thrown before anything is forwarded. Cut short or
 * malformed: BAD_REQUEST. What is left of a refused body is drained up to the same amount again, so that the client
 * gets to read the answer; past that the connection is cut. Framing itself (conflicting lengths, bad chunks) is
 * refused by the HTTP parser, see listen.ts.
 * Source: reference limits of spec document 1 ("Limits"); RFC 9110 section 15.5.14.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { GatehouseError } from '../../schemas/index.ts'
import type { Exchange } from './exchange.ts'
import { maxBodyBytes } from './limits.ts'

const empty: Buffer = Buffer.alloc(0)

/**
 * Fills `exchange.body`. Returns without a promise when the request has no body.
 * Throws, or rejects with, REQUEST_TOO_LARGE or BAD_REQUEST.
 */
export function readBody(exchange: Exchange, maxBytes: number = maxBodyBytes): void | Promise<void> {
  const { req, res } = exchange
  const declared = req.headers['content-length']
  if (declared === undefined && req.headers['transfer-encoding'] === undefined) {
    exchange.body = empty
    return
  }
  if (declared !== undefined && Number(declared) > maxBytes) {
    drain(req, res, maxBytes)
    throw new GatehouseError('REQUEST_TOO_LARGE')
  }
  sayContinue(req, res)
  return collect(exchange, maxBytes)
}

/** Refuses by the declared length alone; for the stage that runs before authentication. */
export function refuseDeclaredSize(exchange: Exchange, maxBytes: number = maxBodyBytes): void {
  const declared = exchange.req.headers['content-length']
  if (declared === undefined || Number(declared) <= maxBytes) return
  drain(exchange.req, exchange.res, maxBytes)
  throw new GatehouseError('REQUEST_TOO_LARGE')
}

/** A client that waits for permission gets it only now: a refused request never sends its body. */
function sayContinue(req: IncomingMessage, res: ServerResponse): void {
  const expect = req.headers.expect
  if (expect !== undefined && expect.toLowerCase() === '100-continue' && !res.headersSent) res.writeContinue()
}

function collect(exchange: Exchange, maxBytes: number): Promise<void> {
  const { req, res } = exchange
  return new Promise((resolve, reject) => {
    let first: Buffer | undefined
    let more: Buffer[] | undefined
    let size = 0

    function stop(): void {
      req.off('data', onData).off('end', onEnd).off('error', onCut).off('close', onCut)
    }
    function onData(chunk: Buffer): void {
      size += chunk.length
      if (size > maxBytes) {
        stop()
        drain(req, res, maxBytes)
        reject(new GatehouseError('REQUEST_TOO_LARGE'))
        return
      }
      if (!first) first = chunk
      else if (!more) more = [first, chunk]
      else more.push(chunk)
    }
    function onEnd(): void {
      stop()
      exchange.body = more ? Buffer.concat(more, size) : (first ?? empty)
      resolve()
    }
    function onCut(): void {
      stop()
      // Keeps a late 'error' of the aborted request from being an uncaught one.
      req.on('error', () => {})
      reject(new GatehouseError('BAD_REQUEST', { detail: 'the request body did not arrive completely' }))
    }
    req.on('data', onData).on('end', onEnd).on('error', onCut).on('close', onCut)
  })
}

/** Reads and drops up to `allowance` more bytes, then cuts the connection. */
function drain(req: IncomingMessage, res: ServerResponse, allowance: number): void {
  let left = allowance
  function count(chunk: Buffer): void {
    left -= chunk.length
    if (left < 0) req.socket.destroy()
  }
  req.on('error', () => {})
  req.on('data', count)
  // Node drops 'data' listeners when the answer is finished before the request is; the count must go on.
  res.once('finish', () => {
    if (!req.complete) req.off('data', count).on('data', count)
  })
}
