/**
 * Reads JSON bodies of requests, bounded in bytes, values and depth while they arrive, and in bytes over all requests.
 *
 * What is too much is refused at once in memory and answered when the client can hear it: the rest of its body is dropped
 * unread, as far as one more body of the largest size. Coded bodies are refused; nobody who calls us sends any.
 * Source: RFC 9110 sections 15.5.14 and 15.5.16, RFC 9112 section 9.6.
 */
import type { NextFunction, Request, Response } from 'express'
import { GatehouseError } from '../../schemas/index.ts'
import { JsonBounds, type JsonLimits } from '../json-bounds.ts'

export interface BodyLimits extends JsonLimits {
  /** Requests at once. */
  readonly requests: number
  /** Bytes of all of them together. */
  readonly bytesInFlight: number
}

/** Middleware that sets `request.body`. Its counters are its own: make one for each group of callers. */
export function jsonBody(limits: BodyLimits) {
  const inFlight = { requests: 0, bytes: 0 }

  return async function jsonBody(request: Request, response: Response, next: NextFunction): Promise<void> {
    if (inFlight.requests >= limits.requests) throw comeBack()
    inFlight.requests += 1
    response.once('close', () => (inFlight.requests -= 1))
    refuseCoded(request)
    request.body = parse(await collect(request, response, limits, inFlight))
    next()
  }
}

function comeBack(): GatehouseError {
  return new GatehouseError('RATE_LIMITED', {
    detail: 'too many request bodies at once; try again',
    headers: { 'retry-after': '1' },
  })
}

function refuseCoded(request: Request): void {
  const coding = request.get('content-encoding')
  if (coding !== undefined && coding.toLowerCase() !== 'identity')
    throw new GatehouseError('UNSUPPORTED_MEDIA_TYPE', { detail: 'the request body must not be compressed' })
}

/** The whole body. Rejects with the first limit that it passes, after the rest has been dropped. */
function collect(
  request: Request,
  response: Response,
  limits: BodyLimits,
  inFlight: { bytes: number },
): Promise<string> {
  const bounds = new JsonBounds(limits)
  const declared = Math.min(Number(request.get('content-length') ?? 0), limits.bytes)
  return new Promise((resolve, reject) => {
    let body = Buffer.alloc(0)
    let size = 0
    let refused: unknown
    let dropped = 0

    function release(): void {
      inFlight.bytes -= size
      size = 0
      body = Buffer.alloc(0)
    }
    function end(): void {
      request.off('data', take).off('end', finish).off('close', cut)
    }
    function take(chunk: Buffer): void {
      if (refused !== undefined) {
        dropped += chunk.length
        if (dropped > limits.bytes) fail(refused)
        return
      }
      try {
        bounds.take(chunk)
        if (inFlight.bytes + chunk.length > limits.bytesInFlight) throw comeBack()
        inFlight.bytes += chunk.length
        body = withRoom(body, size, chunk.length, declared)
        size += chunk.copy(body, size)
      } catch (error) {
        refused = error
        response.set('connection', 'close')
        release()
      }
    }
    function fail(error: unknown): void {
      end()
      release()
      reject(error)
    }
    function finish(): void {
      if (refused !== undefined) return fail(refused)
      end()
      const text = body.toString('utf8', 0, size)
      release()
      resolve(text)
    }
    function cut(): void {
      fail(new GatehouseError('BAD_REQUEST', { detail: 'the request body did not arrive completely' }))
    }
    // An aborted request may report an error long after its end.
    request.on('error', () => {})
    request.on('data', take).on('end', finish).on('close', cut)
  })
}

const firstBytes = 64 * 1024

/**
 * The buffer itself, or a larger one with the same content. One large buffer goes back to the system when it is free; a
 * thousand chunks do not. What is only declared is not allocated.
 */
function withRoom(
  body: Buffer<ArrayBuffer>,
  size: number,
  more: number,
  declared: number,
): Buffer<ArrayBuffer> {
  if (size + more <= body.length) return body
  const doubled = Math.max(2 * body.length, size + more, firstBytes)
  const larger = Buffer.allocUnsafeSlow(declared >= size + more ? Math.min(doubled, declared) : doubled)
  body.copy(larger, 0, 0, size)
  return larger
}

/** The parser's own text would quote the body. */
function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new GatehouseError('BAD_REQUEST', { detail: 'the request body must be JSON' })
  }
}
