/**
 * An HTTP exchange with an untrusted peer. Does not follow redirects, limits the body's size and duration, and can stop
 * reading a stream early.
 */
import type { IncomingHttpHeaders } from 'node:http'
import { StringDecoder } from 'node:string_decoder'
import { type Dispatcher, failureOf, type NetworkFailure } from '../../net/index.ts'

export const maxBodyBytes = 262_144

export interface ProbeReply {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: string
  /**
   * `end`: complete. `enough`: `until` ended the read. `large`: over the size limit. `time`: over the time limit.
   * `cut`: closed early.
   */
  readonly ended: 'end' | 'enough' | 'large' | 'time' | 'cut'
  /** Local time halfway between sending the request and receiving the response headers. */
  readonly at: number
  /** Time until the response headers arrived. */
  readonly roundTripMs: number
}

export interface ProbeRequest {
  readonly method: 'GET' | 'POST' | 'DELETE' | 'OPTIONS'
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  readonly timeoutMs: number
  /** Receives each chunk. Returns true to stop reading. */
  readonly until?: (chunk: Buffer) => boolean
  /** Time limit for the body. Default: the remainder of `timeoutMs`. 0 skips the body. */
  readonly bodyMs?: number
}

export async function exchange(
  dispatcher: Dispatcher,
  url: URL,
  { method, headers = {}, body, timeoutMs, until = () => false, bodyMs }: ProbeRequest,
): Promise<ProbeReply | NetworkFailure> {
  const limit = new AbortController()
  const abort = (): void => limit.abort(new DOMException('no response in time', 'TimeoutError'))
  let timer = setTimeout(abort, timeoutMs)
  const started = performance.now()
  try {
    const response = await dispatcher.request({
      origin: url.origin,
      path: url.pathname + url.search,
      method,
      headers: { 'user-agent': 'gatehouse-doctor', ...headers },
      body: body ?? null,
      headersTimeout: timeoutMs,
      signal: limit.signal,
    })
    const roundTripMs = performance.now() - started
    const at = Date.now() - roundTripMs / 2
    if (bodyMs !== undefined) {
      clearTimeout(timer)
      timer = setTimeout(abort, bodyMs)
    }
    const read = bodyMs === 0 ? discard(response.body) : await readBounded(response.body, until, limit.signal)
    return { status: response.statusCode, headers: response.headers, at, roundTripMs, ...read }
  } catch (error) {
    return failureOf(error)
  } finally {
    clearTimeout(timer)
  }
}

interface Stream extends AsyncIterable<unknown> {
  on(event: 'error', listener: () => void): unknown
  destroy(): unknown
}

function discard(stream: Stream): Pick<ProbeReply, 'body' | 'ended'> {
  stream.on('error', () => {})
  stream.destroy()
  return { body: '', ended: 'enough' }
}

async function readBounded(
  stream: Stream,
  until: (chunk: Buffer) => boolean,
  signal: AbortSignal,
): Promise<Pick<ProbeReply, 'body' | 'ended'>> {
  const decoder = new StringDecoder('utf8')
  let body = ''
  let size = 0
  stream.on('error', () => {})
  try {
    for await (const chunk of stream) {
      if (!Buffer.isBuffer(chunk)) continue
      size += chunk.length
      if (size > maxBodyBytes) return { body, ended: 'large' }
      body += decoder.write(chunk)
      if (until(chunk)) return { body, ended: 'enough' }
    }
    return { body, ended: 'end' }
  } catch {
    return { body, ended: signal.aborted ? 'time' : 'cut' }
  } finally {
    stream.destroy()
  }
}

export function isFailure(reply: ProbeReply | NetworkFailure): reply is NetworkFailure {
  return 'failure' in reply
}

/** Returns the first value of a header. */
export function header(reply: ProbeReply, name: string): string | undefined {
  const value = reply.headers[name]
  return Array.isArray(value) ? value[0] : value
}

/** Returns the media type in lower case, without parameters. */
export function mediaType(reply: ProbeReply): string {
  return header(reply, 'content-type')?.split(';', 1)[0]?.trim().toLowerCase() ?? ''
}
