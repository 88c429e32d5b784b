/**
 * The common key for every backend resource that callers share: pooled connections, lists, shared work and stored
 * backend sessions. The key covers the issuer, subject, client and authorization claims (a caller's `identityOf`), and
 * the values of passed-through headers. A backend may treat requests differently if any of these values differ.
 *
 * The key is a digest of fixed length and contains no token or header value. Session ownership uses `Caller.key`
 * instead.
 */
import { hash } from 'node:crypto'
import { type Caller, identityOf } from '../../net/index.ts'

/** The party on whose behalf a request is sent to a backend. A request without a caller comes from Gatehouse itself. */
export interface Requester {
  readonly caller: Caller | undefined
  /** Passed-through headers with lowercase names. */
  readonly headers: Readonly<Record<string, string>>
}

/**
 * Headers that identify a single request. The values of these headers differ with every request and do not affect the
 * response.
 */
const perRequestHeaders: ReadonlySet<string> = new Set([
  'x-request-id',
  'request-id',
  'x-correlation-id',
  'correlation-id',
  'traceparent',
  'tracestate',
  'b3',
  'x-b3-traceid',
  'x-b3-spanid',
  'x-b3-parentspanid',
  'x-b3-sampled',
  'x-b3-flags',
  'x-amzn-trace-id',
  'x-cloud-trace-context',
  'x-datadog-trace-id',
  'x-datadog-parent-id',
  'sentry-trace',
  'uber-trace-id',
])

/** Each request's caller and identity, keyed by the request's headers object. */
const cachedIdentities = new WeakMap<
  object,
  { readonly caller: Caller | undefined; readonly identity: string }
>()

/**
 * Returns the same identity for requests that a backend cannot distinguish by credentials or headers. The identity is
 * computed once for each request.
 */
export function requesterIdentity({ caller, headers }: Requester): string {
  const cached = cachedIdentities.get(headers)
  if (cached && cached.caller === caller) return cached.identity
  const callerIdentity = caller ? identityOf(caller) : ''
  const identifyingHeaders = Object.entries(headers).filter(([name]) => !perRequestHeaders.has(name))
  if (identifyingHeaders.length === 0) return callerIdentity
  const identity = hash('sha256', JSON.stringify([callerIdentity, identifyingHeaders]), 'base64url')
  cachedIdentities.set(headers, { caller, identity })
  return identity
}

/**
 * Returns the same key for requests with the same credential (requester and token). A token may expire or be revoked,
 * so failed work under this key does not affect the same user's other tokens.
 */
export function credentialKey(requester: Requester): string {
  const token = requester.caller?.token
  const identity = requesterIdentity(requester)
  return token === undefined ? identity : `${identity} ${hash('sha256', token, 'base64url')}`
}
