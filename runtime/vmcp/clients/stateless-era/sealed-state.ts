/**
 * Seals the state that a stateless client returns in the next round of a request. The client cannot read or change the
 * state. The state is valid only for the same caller, request and server, and only until it expires.
 *
 * The seal is AES-256-GCM. A server's replicas share key material and accept each other's state.
 * Source: MCP 2026-07-28, patterns/mrtr, "Server Requirements".
 */
import { createCipheriv, createDecipheriv, hash, hkdfSync, randomBytes } from 'node:crypto'
import { maxBackendStateBytes } from '../../../mcp/index.ts'

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
const ivBytes = 12
const tagBytes = 16
const headBytes = 1 + ivBytes + tagBytes
/** Maximum total size of the expiry, the kind, the trace and the backend. */
const maxFactsBytes = 1024
const maxState = Math.ceil(((headBytes + maxFactsBytes + maxBackendStateBytes) * 4) / 3)

/**
 * Makes the sealer. `secret` returns key material that the replicas share. While `secret` returns undefined, the
 * process uses its own key. `server` is the same for all replicas of a server, and differs between servers.
 */
export function makeStateSealer(options: {
  readonly server: string
  readonly secret: () => string | undefined
  readonly ttlMs: number
  readonly now: () => number
}): StateSealer {
  const processSecret = randomBytes(32).toString('base64')
  let derivedKey: { readonly material: string; readonly key: Buffer } | undefined

  function key(): Buffer {
    const material = options.secret() ?? processSecret
    if (derivedKey?.material !== material) {
      derivedKey = {
        material,
        key: Buffer.from(hkdfSync('sha256', material, '', 'gatehouse vmcp request state', 32)),
      }
    }
    return derivedKey.key
  }

  function aad({ caller, request }: StateBinding): Buffer {
    return Buffer.from(
      hash('sha256', JSON.stringify([formatVersion, options.server, caller, request]), 'hex'),
    )
  }
  return {
    seal(content, binding) {
      const iv = randomBytes(ivBytes)
      const cipher = createCipheriv('aes-256-gcm', key(), iv)
      cipher.setAAD(aad(binding))
      const text = textOf(content, options.now() + options.ttlMs)
      const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
      return Buffer.concat([Buffer.of(formatVersion), iv, cipher.getAuthTag(), sealed]).toString('base64url')
    },
    open(state, binding) {
      const bytes = state.length > maxState ? undefined : Buffer.from(state, 'base64url')
      if (!bytes || bytes.length < headBytes || bytes[0] !== formatVersion) return undefined
      // Accept only one encoding of a state, because base64 may end with unused bits.
      if (bytes.toString('base64url') !== state) return undefined
      try {
        const decipher = createDecipheriv('aes-256-gcm', key(), bytes.subarray(1, 1 + ivBytes), {
          authTagLength: tagBytes,
        })
        decipher.setAAD(aad(binding))
        decipher.setAuthTag(bytes.subarray(1 + ivBytes, headBytes))
        const text = Buffer.concat([decipher.update(bytes.subarray(headBytes)), decipher.final()])
        return contentOf(text.toString(), options.now())
      } catch {
        return undefined
      }
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
