/**
 * Calls an OAuth endpoint or fetches a metadata document, and turns every failure into an OAuthClientError.
 *
 * The injected fetch (runtime/net) limits time and size, follows GET redirects on the same authority, and rejects plain
 * http except for loopback. Nothing here retries. An abort rejects with the signal's reason.
 */
import { jsonFields } from '../../schemas/index.ts'
import { type Fetch, type FetchInit, FetchRefusedError } from '../net/index.ts'
import { OAuthClientError } from './client-error.ts'
import { wordsOf } from './refusals/peer-words.ts'

export type { Fetch }

/** Options shared by every call in this module. */
export interface OAuthCallOptions {
  readonly fetch: Fetch
  readonly signal?: AbortSignal | undefined
}

export type JsonRecord = Readonly<Record<string, unknown>>

/**
 * Sends a request. Rejects with OAuthClientError `unreachable` when no response arrives, and `protocol` when the
 * response is too large or the address is not allowed. `what` is the name of the peer in messages.
 */
export async function send(
  what: string,
  url: string,
  init: FetchInit,
  options: OAuthCallOptions,
): Promise<Response> {
  try {
    return await options.fetch(url, { redirect: 'manual', ...init, signal: options.signal })
  } catch (error) {
    if (options.signal?.aborted) throw error
    if (isOurRefusal(error)) {
      throw new OAuthClientError('protocol', `the address of ${what} is not allowed`, { cause: error })
    }
    if (error instanceof FetchRefusedError && error.maxBytes !== undefined) {
      throw new OAuthClientError('protocol', `${what} returned more than ${error.maxBytes} bytes`, {
        cause: error,
      })
    }
    throw new OAuthClientError('unreachable', `${what} could not be reached`, { cause: error })
  }
}

/** True when our own dial policy rejected the URL or the address, so a retry cannot help. */
function isOurRefusal(error: unknown): boolean {
  for (let failure: unknown = error; failure instanceof Error; failure = failure.cause) {
    if ('code' in failure && (failure.code === 'URL_REFUSED' || failure.code === 'ADDRESS_REFUSED'))
      return true
  }
  return false
}

/**
 * Returns the response as a JSON object. Rejects with OAuthClientError: `unreachable` for 5xx and 429, `absent` for
 * 404, 405, 410 and 501, `refused` for other unexpected statuses, and `protocol` for anything else. A `refused` error
 * contains the OAuth error code, if the server sent one.
 */
export async function readJson(
  what: string,
  response: Response,
  expected: readonly number[] = [200],
): Promise<JsonRecord> {
  // Ignore the content type: servers send JSON as text/plain or application/octet-stream.
  const text = await response.text()
  const body = jsonFields(text)
  const words = (): string | undefined => wordsOf(text, body)
  if (!expected.includes(response.status)) throw refusal(what, response, body, words())
  if (body === undefined) {
    throw new OAuthClientError('protocol', `${what} did not respond with a JSON object`, {
      description: words(),
    })
  }
  // Some servers report an error with status 200.
  if (typeof body['error'] === 'string' && body['error'] !== '') throw refusal(what, response, body, words())
  return body
}

function refusal(
  what: string,
  response: Response,
  body: JsonRecord | undefined,
  description: string | undefined,
): OAuthClientError {
  const { status } = response
  const error = errorCode(body?.['error'])
  const details = {
    error,
    description,
    status,
    retryAfterSec: retryAfter(response),
  }
  if (status >= 500 && status !== 501)
    return new OAuthClientError('unreachable', `${what} answered with status ${status}`, details)
  if (status === 429)
    return new OAuthClientError('unreachable', `${what} is limiting the request rate`, details)
  if (error !== undefined) {
    const kind = error === 'temporarily_unavailable' || error === 'server_error' ? 'unreachable' : 'refused'
    return new OAuthClientError(kind, `${what} refused the request: ${error}`, details)
  }
  if ([404, 405, 410, 501].includes(status)) {
    return new OAuthClientError('absent', `${what} does not exist (status ${status})`, details)
  }
  return new OAuthClientError('refused', `${what} answered with status ${status}`, details)
}

/** Returns the value if it matches the grammar of an OAuth error code (RFC 6749 appendix A.7), otherwise undefined. */
function errorCode(value: unknown): string | undefined {
  return typeof value === 'string' && /^[\x20\x21\x23-\x5b\x5d-\x7e]{1,100}$/.test(value) ? value : undefined
}

function retryAfter(response: Response): number | undefined {
  const value = response.headers.get('retry-after')
  return value !== null && /^\d{1,5}$/.test(value) ? Number(value) : undefined
}

/** Reads a member that must be a string when present. Some servers send null or '' for values that they do not have. */
export function optionalString(what: string, body: JsonRecord, name: string): string | undefined {
  const value = body[name]
  if (value === undefined || value === null || value === '') return undefined
  if (typeof value === 'string') return value
  throw new OAuthClientError('protocol', `${what} sent a ${name} that is not a string`)
}

export function requiredString(what: string, body: JsonRecord, name: string): string {
  const value = optionalString(what, body, name)
  if (value === undefined) throw new OAuthClientError('protocol', `${what} sent no ${name}`)
  return value
}

/** Reads a member that must be an array of strings when present. */
export function optionalStrings(what: string, body: JsonRecord, name: string): readonly string[] | undefined {
  const value = body[name]
  if (value === undefined || value === null) return undefined
  if (Array.isArray(value) && value.every((item) => typeof item === 'string')) return value
  throw new OAuthClientError('protocol', `${what} sent a ${name} that is not a list of strings`)
}
