/**
 * A small `fetch` for documents and token requests. The function has one dispatcher, reads whole responses, and limits
 * time and size.
 *
 * OAuth and metadata requests use this function. It is also the `customFetch` for jose and oauth4webapi, because their
 * default fetch would bypass the address checks. The response is read completely before it is returned. For GET and
 * HEAD, the function follows redirects within the same authority unless they downgrade to http, and returns other
 * redirects as 3xx responses. Plain http is allowed only to loopback. Not for MCP traffic: streams use the dispatcher
 * directly.
 */
import { ModuleError } from '../../../schemas/index.ts'
import { isLoopbackHost } from '../addresses.ts'
import { type DispatcherOptions, makeDispatcher } from './dispatcher.ts'
import { processProxyEnvironment } from './proxy-environment.ts'
import { proxyName } from './proxy-server.ts'
import { requestWhole, type WholeResponse } from './whole-response.ts'

/** The subset of the standard RequestInit that jose and oauth4webapi use. */
export interface FetchInit {
  readonly method?: string | undefined
  readonly headers?: Headers | Record<string, string> | undefined
  readonly body?: string | Uint8Array<ArrayBuffer> | URLSearchParams | ReadableStream | null | undefined
  readonly signal?: AbortSignal | null | undefined
  readonly redirect?: string | undefined
  /** Overrides the redirect limit for this call. */
  readonly maxRedirects?: number | undefined
}

export type Fetch = (url: string | URL, init?: FetchInit) => Promise<Response>

export interface FetchOptions extends DispatcherOptions {
  /** Time from the call to the last byte of the response. Default: 30 s. */
  readonly timeoutMs?: number | undefined
  /** Maximum size of the decoded response. Default: 1 MiB. */
  readonly maxBytes?: number | undefined
  /** Maximum number of redirects. Default: 10. If 0, redirects are returned to the caller. */
  readonly maxRedirects?: number | undefined
  /** Allows plain http to any host. By default, plain http is allowed only to loopback. */
  readonly allowHttp?: boolean | undefined
}

/**
 * Thrown when a request violates one of this module's rules. `code` is stable; the message contains no query and no
 * credentials.
 */
export class FetchRefusedError extends ModuleError {
  readonly code: 'URL_REFUSED' | 'ANSWER_TOO_LARGE' | 'TIMED_OUT'
  /** Size limit that the response exceeded. */
  readonly maxBytes: number | undefined
  constructor(code: FetchRefusedError['code'], message: string, maxBytes?: number) {
    super(message)
    this.code = code
    this.maxBytes = maxBytes
  }
}

/**
 * Creates a fetch with its own connection pool. It rejects with FetchRefusedError, AddressRefusedError (as `cause` of
 * a TypeError), the signal's reason, or a network error.
 */
export function makeFetch(options: FetchOptions = {}): Fetch & { close(): Promise<void> } {
  const dispatcher = makeDispatcher(options)
  const timeoutMs = options.timeoutMs ?? 30_000
  const maxBytes = options.maxBytes ?? 1_048_576
  const active = new Set<Promise<Response>>()

  async function send(input: string | URL, init: FetchInit = {}): Promise<Response> {
    const maxRedirects = init.maxRedirects ?? options.maxRedirects ?? 10
    const timeout = AbortSignal.timeout(timeoutMs)
    const signal = init.signal ? AbortSignal.any([init.signal, timeout]) : timeout
    const method = init.method?.toUpperCase() ?? 'GET'
    const { body, headers } = outgoing(init)
    let url = new URL(input)
    const tooLarge = () =>
      new FetchRefusedError('ANSWER_TOO_LARGE', `the response is larger than ${maxBytes} bytes`, maxBytes)
    try {
      for (let hops = 0; ; hops++) {
        checkUrl(url, options.allowHttp ?? false)
        const request = { url, method, headers, body, signal, maxBytes, tooLarge }
        const response = await requestWhole(dispatcher, request)
        const next =
          hops < maxRedirects && (method === 'GET' || method === 'HEAD') ? target(response, url) : undefined
        if (!next) return standard(response)
        url = next
      }
    } catch (error) {
      if (timeout.aborted && !init.signal?.aborted) {
        const proxy = proxyName(url.href, options.proxy ?? processProxyEnvironment())
        const through = proxy === undefined ? '' : ` (through the HTTP proxy ${proxy})`
        throw new FetchRefusedError(
          'TIMED_OUT',
          `${url.host} did not respond within ${timeoutMs} ms${through}`,
        )
      }
      throw error
    }
  }

  async function fetch(input: string | URL, init?: FetchInit): Promise<Response> {
    const response = send(input, init)
    active.add(response)
    try {
      return await response
    } finally {
      active.delete(response)
    }
  }

  /**
   * Waits only for active requests, because `dispatcher.close()` would also wait for the connections of aborted
   * requests.
   */
  async function close(): Promise<void> {
    await Promise.allSettled(active)
    await dispatcher.destroy()
  }
  return Object.assign(fetch, { close })
}

/** Returns the body and headers to send. */
function outgoing({ body = null, headers }: FetchInit): {
  readonly body: string | Uint8Array | null
  readonly headers: Readonly<Record<string, string>>
} {
  const given = Object.fromEntries(headers instanceof Headers ? headers : new Headers(headers))
  const defaults = { accept: '*/*', 'accept-encoding': 'gzip, deflate', 'user-agent': 'undici' }
  if (body === null || body instanceof Uint8Array) return { body, headers: { ...defaults, ...given } }
  if (typeof body !== 'string' && !(body instanceof URLSearchParams))
    throw new TypeError('streams are not supported as a request body')
  const type = typeof body === 'string' ? 'text/plain' : 'application/x-www-form-urlencoded'
  return {
    body: body.toString(),
    headers: { ...defaults, 'content-type': `${type};charset=UTF-8`, ...given },
  }
}

/** Returns the target of an allowed redirect: a redirect within the same authority, and never from https to http. */
function target({ status, headers: { location } }: WholeResponse, from: URL): URL | undefined {
  if (![301, 302, 307, 308].includes(status)) return undefined
  if (location === undefined || !URL.canParse(location, from.href)) return undefined
  const to = new URL(location, from)
  const downgrade = from.protocol === 'https:' && to.protocol !== 'https:'
  return to.host === from.host && !downgrade && /^https?:$/.test(to.protocol) ? to : undefined
}

function checkUrl(url: URL, allowHttp: boolean): void {
  if (url.username !== '' || url.password !== '') {
    throw new FetchRefusedError('URL_REFUSED', `the URL for ${url.host} must not contain credentials`)
  }
  if (url.protocol === 'https:') return
  if (url.protocol === 'http:' && (allowHttp || isLoopbackHost(url.hostname))) return
  throw new FetchRefusedError('URL_REFUSED', `${url.protocol}//${url.host} must use https`)
}

function standard({ status, headers, body }: WholeResponse): Response {
  const fields = new Headers()
  for (const [name, value = ''] of Object.entries(headers))
    for (const one of Array.isArray(value) ? value : [value]) fields.append(name, one)
  fields.delete('content-encoding')
  fields.delete('content-length')
  const bodiless = status === 204 || status === 205 || status === 304
  return new Response(bodiless ? null : new Uint8Array(body), { status, headers: fields })
}
