/**
 * The state that a stateless client carries between the rounds of one request, sealed so that it can neither be read
 * nor changed, nor used by another caller, for another request, or after its time.
 *
 * AES-256-GCM. Replicas that share key material accept each other's state.
 * Source: MCP 2026-07-28, patterns/mrtr, "Server Requirements".
 */
import { createCipheriv, createDecipheriv, hash, hkdfSync, randomBytes } from 'node:crypto'

export interface StateContent {
  /**
   * `pass`: a backend's own state. `parked`: a call of this process that waits for answers. `again`: the request is to
   * be made again, because what stood in its way is done.
   */
  readonly kind: 'pass' | 'parked' | 'again'
  /** The backend's state, the id of the parked call, or nothing. */
  readonly value: string
  /** `traceparent` of the request that the client goes on with; undefined when it is not traced. */
  readonly trace?: string | undefined
}

/** What the state is bound to. */
export interface StateBinding {
  /** `Caller.key` */
  readonly caller: string
  /** Says which request it is: method, subject and arguments. */
  readonly request: string
}

export interface StateSealer {
  seal(content: StateContent, binding: StateBinding): string
  /** Undefined for whatever was not sealed here for this binding, and for what has expired. */
  open(state: string, binding: StateBinding): StateContent | undefined
}

const formatVersion = 1
const ivBytes = 12
const tagBytes = 16
const maxState = 256 * 1024

/** `secret` answers key material shared by replicas; while it answers nothing the key is this process's own. */
export function makeStateSealer(options: {
  readonly secret: () => string | undefined
  readonly ttlMs: number
  readonly now: () => number
}): StateSealer {
  const own = randomBytes(32).toString('base64')
  let known: { readonly material: string; readonly key: Buffer } | undefined

  function key(): Buffer {
    const material = options.secret() ?? own
    if (known?.material !== material) {
      known = {
        material,
        key: Buffer.from(hkdfSync('sha256', material, '', 'gatehouse vmcp request state', 32)),
      }
    }
    return known.key
  }

  function aad({ caller, request }: StateBinding): Buffer {
    return Buffer.from(hash('sha256', JSON.stringify([formatVersion, caller, request]), 'hex'))
  }
  return {
    seal({ kind, value, trace }, binding) {
      const iv = randomBytes(ivBytes)
      const cipher = createCipheriv('aes-256-gcm', key(), iv)
      cipher.setAAD(aad(binding))
      const text = JSON.stringify([options.now() + options.ttlMs, kind, value, trace])
      const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
      return Buffer.concat([Buffer.of(formatVersion), iv, cipher.getAuthTag(), sealed]).toString('base64url')
    },
    open(state, binding) {
      const bytes = state.length > maxState ? undefined : Buffer.from(state, 'base64url')
      if (!bytes || bytes.length < 1 + ivBytes + tagBytes || bytes[0] !== formatVersion) return undefined
      // One state has one spelling: base64 leaves space for bits that nobody checks.
      if (bytes.toString('base64url') !== state) return undefined
      try {
        const decipher = createDecipheriv('aes-256-gcm', key(), bytes.subarray(1, 1 + ivBytes), {
          authTagLength: tagBytes,
        })
        decipher.setAAD(aad(binding))
        decipher.setAuthTag(bytes.subarray(1 + ivBytes, 1 + ivBytes + tagBytes))
        const text = Buffer.concat([
          decipher.update(bytes.subarray(1 + ivBytes + tagBytes)),
          decipher.final(),
        ])
        return contentOf(JSON.parse(text.toString()), options.now())
      } catch {
        return undefined
      }
    },
  }
}

function contentOf(read: unknown, now: number): StateContent | undefined {
  if (!Array.isArray(read)) return undefined
  const [expiresAt, kind, value, trace]: readonly unknown[] = read
  if (typeof expiresAt !== 'number' || expiresAt <= now || typeof value !== 'string') return undefined
  if (kind !== 'pass' && kind !== 'parked' && kind !== 'again') return undefined
  return { kind, value, trace: typeof trace === 'string' ? trace : undefined }
}
