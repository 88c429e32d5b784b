/**
 * The one key for everything that callers share towards backends: pools of connections, lists, single flights, stored
 * backend sessions. Covers issuer, subject, client and authorization claims (`identityOf` of a caller) and the values of
 * passed-through headers, because a backend may treat requests differently by any of them.
 *
 * A digest of fixed length: no token, no header value. Session ownership is another matter: `Caller.key`.
 */
import { hash } from 'node:crypto'
import { type Caller, identityOf } from '../../net/index.ts'

/** In whose name a request goes to a backend; without a caller it is a request of the gateway itself. */
export interface Requester {
  readonly caller: Caller | undefined
  /** Passed-through headers, lower-case names. */
  readonly headers: Readonly<Record<string, string>>
}

/** Headers that name one request. They differ with every request and decide nothing. */
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

/** By the headers of one request, together with the caller that they were sent by. */
const known = new WeakMap<object, { readonly caller: Caller | undefined; readonly identity: string }>()

/** Equal for requests that a backend cannot tell apart by credentials or headers. Computed once for each request. */
export function requesterIdentity({ caller, headers }: Requester): string {
  const before = known.get(headers)
  if (before && before.caller === caller) return before.identity
  const own = caller ? identityOf(caller) : ''
  const counted = Object.entries(headers).filter(([name]) => !perRequestHeaders.has(name))
  if (counted.length === 0) return own
  const identity = hash('sha256', JSON.stringify([own, counted]), 'base64url')
  known.set(headers, { caller, identity })
  return identity
}

/**
 * Equal for requests with the same credential: requester and token. Keys work whose failure says nothing about another
 * token of the same user, because one may be expired or revoked.
 */
export function credentialKey(requester: Requester): string {
  const token = requester.caller?.token
  const identity = requesterIdentity(requester)
  return token === undefined ? identity : `${identity} ${hash('sha256', token, 'base64url')}`
}
