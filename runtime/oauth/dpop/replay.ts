/**
 * Marks DPoP proofs as used, so that a recorded proof cannot be sent again, on any replica that shares the store.
 *
 * A mark is kept until every replica rejects the proof because of its age. In memory, the number of marks per owner is
 * limited, so that a client that sends many proofs cannot fill the store for all clients.
 * Source: RFC 9449 section 11.1.
 */
import { hash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { GatehouseError } from '../../../schemas/index.ts'
import type { Store } from '../../store/index.ts'
import { skewSec } from '../jwt.ts'
import { ProofRefused, type VerifiedProof } from './proof.ts'

/** Maximum number of marks in memory. */
export const maxMarks = 100_000
/** Maximum number of marks per owner in memory, within the lifetime of a mark. */
export const maxMarksPerOwner = 20_000

export interface ReplayParts {
  readonly store: Store
  /** See `ProofRules.maxAgeMs`. */
  readonly maxAgeMs: number
  readonly now: () => number
}

/** Marks one proof of an owner as used. Rejects with ProofRefused, RATE_LIMITED, STORE_DOWN or STORE_FULL. */
export type MarkProof = (proof: VerifiedProof, owner: string) => Promise<void>

export function makeReplayCheck({ store, maxAgeMs, now }: ReplayParts): MarkProof {
  const windowMs = 2 * maxAgeMs + skewSec * 1000
  const owners = new LRUCache<string, { count: number; readonly endsAtMs: number }>({ max: 10_000 })

  function countMark(owner: string): void {
    const nowMs = now()
    const known = owners.get(owner)
    if (known === undefined || known.endsAtMs <= nowMs) {
      owners.set(owner, { count: 1, endsAtMs: nowMs + windowMs })
      return
    }
    if (known.count >= maxMarksPerOwner) {
      const seconds = Math.max(1, Math.ceil((known.endsAtMs - nowMs) / 1000))
      throw new GatehouseError('RATE_LIMITED', { headers: { 'retry-after': String(seconds) } })
    }
    known.count += 1
  }

  return async ({ jkt, jti, iat }, owner) => {
    if (store.kind === 'memory') countMark(owner)
    const key = hash('sha256', `${jkt}.${jti}`, 'base64url')
    const ttlMs = Math.max(1, Math.ceil(iat * 1000 + maxAgeMs + skewSec * 1000 - now()))
    if (!(await store.set(`proof:${key}`, '', { ttlMs, onlyIf: 'absent', yields: true })))
      throw new ProofRefused('replayed')
  }
}
