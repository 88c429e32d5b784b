/**
 * Sends one request through a dispatcher and reads the whole response, up to a size limit. Decodes content codings.
 *
 * Replaces undici's fetch, which costs several times as much for streams and copies, and adds 0.3 MB of code. An event
 * stream may never end and is not a document, so it counts as an empty body. fetch.ts handles redirects, and
 * connector.ts handles addresses.
 * Source: RFC 9110 sections 8.4 and 12.5.3.
 */
import type { IncomingHttpHeaders } from 'node:http'
import { Pieces } from '../pieces.ts'
import { reasonOf } from '../waiting.ts'
import type { Dispatcher, DispatchController, DispatchHandler } from './dispatcher.ts'

export interface WholeRequest {
  readonly url: URL
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | Uint8Array | null
  readonly signal: AbortSignal
  /** Maximum size of the decoded body. */
  readonly maxBytes: number
  /** Creates the error for a larger body. */
  readonly tooLarge: () => Error
}

export interface WholeResponse {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
}

/**
 * Rejects with the signal's reason, the error from `tooLarge`, or a TypeError with the network failure as its cause.
 */
export async function requestWhole(dispatcher: Dispatcher, request: WholeRequest): Promise<WholeResponse> {
  const response = await new Promise<WholeResponse>((resolve, reject) => {
    if (request.signal.aborted) {
      reject(reasonOf(request.signal))
      return
    }
    const handler = new WholeResponseHandler(request, resolve, reject)
    const { url, method, headers, body } = request
    try {
      dispatcher.dispatch(
        { origin: url.origin, path: url.pathname + url.search, method, headers, body },
        handler,
      )
    } catch (cause) {
      handler.fail(failed(cause))
    }
  })
  return response.headers['content-encoding'] === undefined ? response : decoded(response, request)
}

function failed(cause: unknown): TypeError {
  return new TypeError('fetch failed', { cause })
}

function isEventStream(headers: IncomingHttpHeaders): boolean {
  return /^\s*text\/event-stream\s*(?:;|$)/i.test(headers['content-type'] ?? '')
}

class WholeResponseHandler implements DispatchHandler {
  readonly #request: WholeRequest
  readonly #resolve: (response: WholeResponse) => void
  readonly #reject: (error: Error) => void
  readonly #onAbort = (): void => this.fail(reasonOf(this.#request.signal))
  readonly #body = new Pieces()
  #controller: DispatchController | undefined
  #status = 0
  #headers: IncomingHttpHeaders = {}
  #done = false

  constructor(
    request: WholeRequest,
    resolve: (response: WholeResponse) => void,
    reject: (error: Error) => void,
  ) {
    this.#request = request
    this.#resolve = resolve
    this.#reject = reject
    request.signal.addEventListener('abort', this.#onAbort, { once: true })
  }

  /** Ends the request with an error and drops further data. */
  fail(error: Error): void {
    if (!this.#finish()) return
    this.#controller?.abort(error)
    this.#reject(error)
  }

  #finish(): boolean {
    if (this.#done) return false
    this.#done = true
    this.#request.signal.removeEventListener('abort', this.#onAbort)
    return true
  }

  onRequestStart(controller: DispatchController): void {
    this.#controller = controller
    if (this.#done) controller.abort(new Error('cancelled'))
  }

  onResponseStart(controller: DispatchController, status: number, headers: IncomingHttpHeaders): void {
    if (status < 200) return
    this.#status = status
    this.#headers = headers
    if (!isEventStream(headers) || !this.#finish()) return
    this.#resolve({ status, headers, body: Buffer.alloc(0) })
    controller.abort(new Error('expected a document, but got an event stream'))
  }

  onResponseData(_controller: DispatchController, chunk: Buffer): void {
    if (this.#done) return
    this.#body.add(chunk)
    if (this.#body.size > this.#request.maxBytes) this.fail(this.#request.tooLarge())
  }

  onResponseEnd(): void {
    if (this.#finish())
      this.#resolve({ status: this.#status, headers: this.#headers, body: this.#body.whole() })
  }

  onResponseError(_controller: DispatchController, cause: Error): void {
    if (this.#finish()) this.#reject(failed(cause))
  }
}

/** Limits the chain, because each coding is decoded in one turn of the event loop. */
const maxCodings = 5

/** Decodes the body. Returns the response unchanged if a coding is unknown. */
async function decoded(
  response: WholeResponse,
  { maxBytes, tooLarge }: Pick<WholeRequest, 'maxBytes' | 'tooLarge'>,
): Promise<WholeResponse> {
  const { brotliDecompressSync, constants, gunzipSync, inflateRawSync, inflateSync } = await import(
    'node:zlib'
  )
  // Accepts a truncated stream, because some servers end a compressed stream early.
  const options = { maxOutputLength: maxBytes, finishFlush: constants.Z_SYNC_FLUSH }
  const codings = (response.headers['content-encoding'] ?? '').toLowerCase().split(',')
  if (codings.length > maxCodings)
    throw failed(new Error(`the response has ${codings.length} content codings`))
  let { body } = response
  try {
    for (const coding of codings.map((name) => name.trim()).toReversed()) {
      if (body.length === 0) break
      if (coding === 'gzip' || coding === 'x-gzip') body = gunzipSync(body, options)
      // Accepts data without the zlib header, which some servers omit.
      else if (coding === 'deflate')
        body = ((body[0] ?? 0) & 0x0f) === 0x08 ? inflateSync(body, options) : inflateRawSync(body, options)
      else if (coding === 'br') body = brotliDecompressSync(body, { maxOutputLength: maxBytes })
      else if (coding !== 'identity') return response
    }
  } catch (cause) {
    throw cause instanceof RangeError ? tooLarge() : failed(cause)
  }
  const { 'content-encoding': _coding, 'content-length': _length, ...headers } = response.headers
  return { ...response, headers, body }
}
