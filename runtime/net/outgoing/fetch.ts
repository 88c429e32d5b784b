/**
 * A small `fetch` for documents and token requests: one dispatcher, whole responses, bounded in time and size.
 *
 * Made for OAuth and metadata calls (also as `customFetch` of jose and oauth4webapi, whose own fetch would bypass every
 * guard). The response is read completely before it is returned. Redirects of GET and HEAD are followed on the same
 * authority without downgrade; anything else comes back as the 3xx it was. Plain http is refused except to loopback.
 * Not for MCP traffic: streams go through the dispatcher itself.
 */
import { ModuleError } from '../../../schemas/index.ts'
import { isLoopbackHost } from '../addresses.ts'
import { type DispatcherOptions, makeDispatcher } from './dispatcher.ts'
import { Pieces } from '../pieces.ts'

/** What callers may pass; a subset of the standard RequestInit that both jose and oauth4webapi satisfy. */
export interface FetchInit {
  readonly method?: string | undefined
  readonly headers?: Headers | Record<string, string> | undefined
  readonly body?: string | Uint8Array<ArrayBuffer> | URLSearchParams | ReadableStream | null | undefined
  readonly signal?: AbortSignal | null | undefined
  readonly redirect?: string | undefined
  /** For this call alone, in place of the limit that the fetch was made with. */
  readonly maxRedirects?: number | undefined
}

export type Fetch = (url: string | URL, init?: FetchInit) => Promise<Response>

export interface FetchOptions extends DispatcherOptions {
  /** From the call to the last byte of the response. Default 30 s. */
  readonly timeoutMs?: number | undefined
  /** Of the decoded answer. Default 1 MiB. */
  readonly maxBytes?: number | undefined
  /** Default 10; 0 returns every redirect. */
  readonly maxRedirects?: number | undefined
  /** Allows plain http to any host; without it only to loopback. */
  readonly allowHttp?: boolean | undefined
}

/** The call broke a rule of this module. `code` is stable; the message holds no query and no credentials. */
export class FetchRefusedError extends ModuleError {
  readonly code: 'URL_REFUSED' | 'ANSWER_TOO_LARGE' | 'TIMED_OUT'
  constructor(code: FetchRefusedError['code'], message: string) {
    super(message)
    this.code = code
  }
}

/**
 * Makes a fetch of its own connection pool. It rejects with FetchRefusedError, AddressRefusedError (as `cause` of a
 * TypeError), the signal's reason, or a network error.
 */
export function makeFetch(options: FetchOptions = {}): Fetch & { close(): Promise<void> } {
  const dispatcher = makeDispatcher(options)
  const timeoutMs = options.timeoutMs ?? 30_000
  const maxBytes = options.maxBytes ?? 1_048_576

  async function send(input: string | URL, init: FetchInit = {}): Promise<Response> {
    const maxRedirects = init.maxRedirects ?? options.maxRedirects ?? 10
    const timeout = AbortSignal.timeout(timeoutMs)
    const signal = init.signal ? AbortSignal.any([init.signal, timeout]) : timeout
    const method = init.method?.toUpperCase() ?? 'GET'
    let url = new URL(input)
    // A bundle has the exports of a CommonJS module in `default` only.
    const { fetch } = (await import('undici/lib/web/fetch/index.js')).default
    try {
      for (let hops = 0; ; hops++) {
        checkUrl(url, options.allowHttp ?? false)
        const response = await fetch(url.href, {
          method,
          headers: init.headers ? [...new Headers(init.headers)] : [],
          body: init.body ?? null,
          signal,
          redirect: 'manual',
          dispatcher,
        })
        const next =
          hops < maxRedirects && (method === 'GET' || method === 'HEAD') ? target(response, url) : undefined
        if (!next) return await complete(response, maxBytes)
        await response.body?.cancel()
        url = next
      }
    } catch (error) {
      if (timeout.aborted && !init.signal?.aborted) {
        throw new FetchRefusedError('TIMED_OUT', `${url.host} did not answer within ${timeoutMs} ms`)
      }
      throw error
    }
  }
  return Object.assign(send, { close: () => dispatcher.close() })
}

/** Where a redirect may lead: same authority, never from https to http. */
function target(
  response: { status: number; headers: { get(name: string): string | null } },
  from: URL,
): URL | undefined {
  if (![301, 302, 307, 308].includes(response.status)) return undefined
  const location = response.headers.get('location')
  if (location === null || !URL.canParse(location, from.href)) return undefined
  const to = new URL(location, from)
  const downgrade = from.protocol === 'https:' && to.protocol !== 'https:'
  return to.host === from.host && !downgrade && /^https?:$/.test(to.protocol) ? to : undefined
}

function checkUrl(url: URL, allowHttp: boolean): void {
  if (url.username !== '' || url.password !== '') {
    throw new FetchRefusedError('URL_REFUSED', `the URL for ${url.host} must not carry credentials`)
  }
  if (url.protocol === 'https:') return
  if (url.protocol === 'http:' && (allowHttp || isLoopbackHost(url.hostname))) return
  throw new FetchRefusedError('URL_REFUSED', `${url.protocol}//${url.host} must be https`)
}

/** Reads the whole response and returns it as a standard Response. */
async function complete(response: Awaited<ReturnType<typeof fetch>>, maxBytes: number): Promise<Response> {
  const pieces = new Pieces()
  if (response.body) {
    for await (const part of response.body as AsyncIterable<Uint8Array>) {
      pieces.add(Buffer.from(part.buffer, part.byteOffset, part.length))
      // Leaving the loop cancels the body.
      if (pieces.size > maxBytes)
        throw new FetchRefusedError('ANSWER_TOO_LARGE', `the response is larger than ${maxBytes} bytes`)
    }
  }
  const headers = new Headers([...response.headers])
  headers.delete('content-encoding')
  headers.delete('content-length')
  const bodiless = response.status === 204 || response.status === 205 || response.status === 304
  return new Response(bodiless ? null : Buffer.concat(pieces.take(), pieces.size), {
    status: response.status,
    headers,
  })
}
