/**
 * Checks and revokes the access tokens of declared clients and of platforms (grant jwt-bearer).
 *
 * Such a token has no session, and is valid while its client or binding is in the configuration. The token becomes
 * invalid if its `jti` is revoked, or if the client or binding is removed after the token was issued. The same applies
 * to every client in a delegated token (delegated-tokens.ts).
 * Source: RFC 9068; RFC 6749 section 4.4.3 (no refresh token); RFC 7009.
 */
import { LRUCache } from 'lru-cache'
import type { Caller } from '../../net/index.ts'
import {
  isAssertionClient,
  isMachineToken,
  isWorkloadSubject,
  machineSubject,
  sha256,
} from '../model/identifiers.ts'
import type { State } from '../storage/state.ts'

/** How long another replica may accept a revoked token. */
const livenessMs = 5_000
/** A revocation is stored for longer than the token is valid, because clocks differ. */
const slackMs = 60_000
/** How long a removal is stored: longer than the lifetime of any token, which is at most an hour. */
const removalMs = 2 * 3_600_000

export interface MachineClaims {
  readonly sub: string
  readonly client_id: string
  readonly iat: number
  readonly jti: string
}

interface MachineTokensParts {
  readonly state: State
  readonly now: () => number
  /**
   * True if the client or binding is in the configuration and every removal of it after this time (Unix seconds) has
   * been stored.
   */
  readonly isDeclaredSince: (clientId: string, sinceSec: number) => boolean
}

export class MachineTokens {
  readonly #parts: MachineTokensParts
  readonly #live = new LRUCache<string, number>({ max: 20_000 })
  /** Counts revocations and removals. The result of a lookup that began before such a change is not cached. */
  #revocations = 0

  constructor(parts: MachineTokensParts) {
    this.#parts = parts
  }

  async isLive({ sub, client_id: clientId, ...claims }: MachineClaims): Promise<boolean> {
    const isOwn = isAssertionClient(clientId) || isWorkloadSubject(sub) || sub === machineSubject(clientId)
    return isOwn && this.isIssuedTo([clientId], claims)
  }

  /** True while all of these clients and bindings are in the configuration and the token is not revoked. */
  async isIssuedTo(
    clientIds: readonly string[],
    { iat, jti }: Pick<MachineClaims, 'iat' | 'jti'>,
  ): Promise<boolean> {
    const { state, now, isDeclaredSince } = this.#parts
    if (!clientIds.every((clientId) => isDeclaredSince(clientId, iat))) return false
    const until = this.#live.get(jti)
    if (until !== undefined && now() < until) return true
    const revocations = this.#revocations
    const [revoked, ...removals] = await Promise.all([
      state.store.get(revokedKey(jti)),
      ...clientIds.map((clientId) => state.store.get(removedKey(clientId))),
    ])
    if (revoked !== undefined || removals.some((atMs = '0') => iat * 1000 <= Number(atMs))) return false
    if (revocations === this.#revocations) this.#live.set(jti, now() + livenessMs)
    return true
  }

  async revoke(jti: string, expSec: number): Promise<void> {
    const { state, now } = this.#parts
    const ttlMs = Math.ceil(expSec * 1000 - now() + slackMs)
    // Not sealed, so that the revocation survives the loss of a secret.
    if (ttlMs > 0) await state.store.set(revokedKey(jti), '1', { ttlMs })
    this.#revocations += 1
    this.#live.delete(jti)
  }

  /** Revokes all tokens that a removed client or binding currently has. */
  async revokeAll(clientId: string): Promise<void> {
    const { state, now } = this.#parts
    await state.store.set(removedKey(clientId), String(now()), { ttlMs: removalMs })
    this.#revocations += 1
    this.#live.clear()
  }
}

function removedKey(clientId: string): string {
  return `removed:${sha256(clientId)}`
}

function revokedKey(jti: string): string {
  return `revoked:${sha256(jti)}`
}

/** Returns the claims of a machine's token; undefined for any other caller. */
export function machineClaims({ claims }: Pick<Caller, 'claims'>): MachineClaims | undefined {
  const { sub, client_id: clientId, iat, jti } = claims
  if (typeof sub !== 'string' || typeof clientId !== 'string') return undefined
  if (!isMachineToken({ sub, client_id: clientId })) return undefined
  if (typeof iat !== 'number' || typeof jti !== 'string') return undefined
  return { sub, client_id: clientId, iat, jti }
}
