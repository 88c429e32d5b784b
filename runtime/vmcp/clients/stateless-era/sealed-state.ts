/**
 * Seals the state that a stateless client returns in the next round of a request. The client cannot read or change the
 * state. The state is valid only for the same caller, request and server, and only until it expires.
 *
 * A server's replicas share key material and accept each other's state.
 * Source: MCP 2026-07-28, patterns/mrtr, "Server Requirements".
 */
import { maxBackendStateBytes } from '../../../mcp/index.ts'
import { makeSealer, sealHeadBytes } from '../../model/sealer.ts'

export type StateContent = {
  /** `traceparent` of the request that the client continues. Undefined if that request is not traced. */
  readonly trace?: string | undefined
} & (
  | {
      /** A backend requested input. */
      readonly kind: 'pass'
      /** The backend's own state as JSON text. Undefined if the backend returned no state. */
      readonly value: string | undefined
      /** Identity of the backend that requested input (`backendIdentity`). */
      readonly backend: string
    }
  /** A call in this process is waiting for answers. `value` is the call's id. */
  | { readonly kind: 'parked'; readonly value: string }
  /** The request must be sent to the backend again, after the user has visited an address. */
  | { readonly kind: 'again' }
)

/** The caller and the request for which a state is valid. */
export interface StateBinding {
  /** The caller's `Caller.key`. */
  readonly caller: string
  /** Digest of the request's method, subject and arguments. */
  readonly request: string
}

export interface StateSealer {
  /** Seals content. Throws RangeError if the value is longer than `maxBackendStateBytes`. */
  seal(content: StateContent, binding: StateBinding): string
  /** Opens a state. Returns undefined if the state has expired, or if this server did not seal it for this binding. */
  open(state: string, binding: StateBinding): StateContent | undefined
}

/**
 * Version 1 states did not identify the server or the backend, so they are rejected, and the client restarts the
 * request.
 */
const formatVersion = 2
/** Maximum total size of the expiry, the kind, the trace and the backend. */
const maxFactsBytes = 1024
const maxState = Math.ceil(((sealHeadBytes + maxFactsBytes + maxBackendStateBytes) * 4) / 3)

/**
 * Makes the sealer. `secrets` returns key material that the replicas share; see `SealerOptions`. `server` is the same for
 * all replicas of a server and differs between servers.
 */
export function makeStateSealer(options: {
  readonly server: string
  readonly secrets: () => readonly string[]
  readonly ttlMs: number
  readonly now: () => number
}): StateSealer {
  const sealer = makeSealer({
    formatVersion,
    purpose: 'gatehouse vmcp request state',
    secrets: options.secrets,
    maxLength: maxState,
  })
  return {
    seal: (content, { caller, request }) =>
      sealer.seal(textOf(content, options.now() + options.ttlMs), [options.server, caller, request]),
    open(state, { caller, request }) {
      const text = sealer.open(state, [options.server, caller, request])
      return text === undefined ? undefined : contentOf(text, options.now())
    },
  }
}

/** Returns one line of facts as JSON, followed by the raw value. */
function textOf(content: StateContent, expiresAt: number): string {
  const value = content.kind === 'again' ? undefined : content.value
  if (value !== undefined && Buffer.byteLength(value) > maxBackendStateBytes)
    throw new RangeError('the state is too long to seal')
  const backend = content.kind === 'pass' ? content.backend : null
  const facts = JSON.stringify([expiresAt, content.kind, content.trace ?? null, backend])
  if (facts.length > maxFactsBytes) throw new RangeError('the state is too large to seal')
  return value === undefined ? facts : `${facts}\n${value}`
}

function contentOf(text: string, now: number): StateContent | undefined {
  const lineEnd = text.indexOf('\n')
  const value = lineEnd < 0 ? undefined : text.slice(lineEnd + 1)
  const facts: unknown = JSON.parse(lineEnd < 0 ? text : text.slice(0, lineEnd))
  if (!Array.isArray(facts)) return undefined
  const [expiresAt, kind, tracedBy, backend]: readonly unknown[] = facts
  if (typeof expiresAt !== 'number' || expiresAt <= now) return undefined
  const trace = typeof tracedBy === 'string' ? tracedBy : undefined
  if (kind === 'pass' && typeof backend === 'string') return { kind, value, backend, trace }
  if (kind === 'parked' && value !== undefined) return { kind, value, trace }
  return kind === 'again' ? { kind, trace } : undefined
}
