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
import type { IncomingMessage, ServerResponse } from 'node:http'
import { GatehouseError } from '../../../schemas/index.ts'
import { refuseCodedRequest } from '../content-coding.ts'
import type { Exchange } from '../exchange.ts'
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
  const declared = req.headers['content-length']
  if (declared === undefined && req.headers['transfer-encoding'] === undefined) {
    exchange.body = empty
    return
  }
  refuseBodyByHead(exchange, maxBytes)
  sayContinue(req, res)
  return collect(exchange, maxBytes, memory)
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
  refuseCodedRequest(headers)
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

/** A client that waits for permission gets it only now: a refused request never sends its body. */
function sayContinue(req: IncomingMessage, res: ServerResponse): void {
  const expect = req.headers.expect
  if (expect !== undefined && expect.toLowerCase() === '100-continue' && !res.headersSent) res.writeContinue()
}

function collect(exchange: Exchange, maxBytes: number, memory: BodyMemory | undefined): Promise<void> {
  const { req, res } = exchange
  return new Promise((resolve, reject) => {
    let pieces = new Pieces()
    let held: HeldBody | undefined
    let counted = 0

    // Listeners stay: to take them away costs as much as to add them.
    let isOver = false
    function refuse(error: unknown): void {
      isOver = true
      pieces = new Pieces()
      // What is left of the body is not read.
      res.shouldKeepAlive = false
      reject(error)
    }

    /** Counts what has arrived since the last time. */
    function hold(memory: BodyMemory): void {
      held ??= memory.begin(exchange, refuse)
      memory.take(held, pieces.size - counted)
      counted = pieces.size
    }

    req.on('data', (chunk: Buffer) => {
      if (isOver) return
      pieces.add(chunk)
      if (pieces.size > maxBytes) return refuse(tooLarge(res))
      if (!memory || pieces.size - counted <= smallBodyBytes) return
      try {
        hold(memory)
      } catch (error) {
        refuse(error)
      }
    })
    req.on('end', () => {
      if (isOver) return
      isOver = true
      if (held) memory?.arrived(held)
      exchange.body = pieces.whole()
      resolve()
    })
    // Node emits no 'error' of a cut request where nobody listens for that.
    req.on('close', () => {
      if (!isOver)
        refuse(new GatehouseError('BAD_REQUEST', { detail: 'the request body did not arrive completely' }))
    })
  })
}
