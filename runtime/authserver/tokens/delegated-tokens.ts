/**
 * Signs and checks delegated tokens: access tokens with which declared clients act for a user.
 *
 * The subject is the user. `act` contains the acting clients, the current one outermost. `session_client_id` is the
 * client that the user signed in to, and `tsid` and `gid` identify the session and the grant. A delegated token is valid
 * while the grant is live, every acting client is declared, and each of them may exchange the tokens of the client
 * before it.
 * Source: RFC 8693 section 4.1; RFC 9068.
 */
import { randomUUID } from 'node:crypto'
import { isFields } from '../../../schemas/index.ts'
import { isMachineSubject, machineSubject } from '../model/identifiers.ts'
import type { MachineAuthMethod } from '../model/records.ts'
import { boundTo, signJwt } from './jwt.ts'
import type { KeyRing } from './key-ring.ts'
import type { MachineTokens } from './machine-tokens.ts'

/** Longer chains are invalid, regardless of the configured maximum. */
const maxActors = 10

interface DelegatedTokensParts {
  readonly machineTokens: MachineTokens
  /** True when the client is declared and may exchange tokens that were issued to the other client. */
  readonly mayExchange: (clientId: string, otherId: string) => boolean
}

export class DelegatedTokens {
  readonly #parts: DelegatedTokensParts

  constructor(parts: DelegatedTokensParts) {
    this.#parts = parts
  }

  /** True while the acting clients may act for the user. Does not check the user's grant. */
  async isLive(claims: Readonly<Record<string, unknown>>): Promise<boolean> {
    const { act, session_client_id: first, client_id: clientId, iat, jti } = claims
    const actors = actingClients(act)
    if (!actors || actors.length === 0 || actors[0] !== clientId) return false
    if (typeof first !== 'string' || typeof iat !== 'number' || typeof jti !== 'string') return false
    const { machineTokens, mayExchange } = this.#parts
    const isAllowed = actors.every((id, index) => mayExchange(id, actors[index + 1] ?? first))
    return isAllowed && machineTokens.isIssuedTo(actors, { iat, jti })
  }
}

/** True for a delegated token, even if its delegation claims are malformed. */
export function isDelegated(claims: object): boolean {
  return Object.hasOwn(claims, 'act') || Object.hasOwn(claims, 'session_client_id')
}

/** Returns the ids of the acting clients, the current one first. Empty without `act`, undefined if it is malformed. */
export function actingClients(act: unknown): readonly string[] | undefined {
  const ids: string[] = []
  for (let next = act; next !== undefined; ) {
    if (!isFields(next) || ids.length === maxActors) return undefined
    const { sub, act: earlier } = next
    if (typeof sub !== 'string' || !isMachineSubject(sub)) return undefined
    ids.push(sub.slice(machineSubject('').length))
    next = earlier
  }
  return ids
}

interface ActClaim {
  readonly sub: string
  readonly act?: ActClaim
}

/** Builds `act` from client ids, the current one first. */
function actOf([current = '', ...earlier]: readonly string[]): ActClaim {
  const sub = machineSubject(current)
  return earlier.length === 0 ? { sub } : { sub, act: actOf(earlier) }
}

export function signDelegatedToken(
  keys: KeyRing,
  request: {
    /** The user, and the session and grant that the token depends on. */
    readonly user: {
      readonly sub: string
      readonly tsid: string
      readonly gid: string
      readonly sessionClientId: string
      readonly authTimeSec: number | undefined
    }
    /** Ids of the acting clients, the current one first. */
    readonly actors: readonly string[]
    readonly authMethod: MachineAuthMethod
    readonly scopes: readonly string[]
    readonly audience: string
    readonly issuer: string
    readonly nowSec: number
    readonly lifeSec: number
    /** Thumbprint of the key that the token is bound to. */
    readonly jkt: string | undefined
  },
): Promise<string> {
  const { user, actors, authMethod, scopes, audience, issuer, nowSec, lifeSec, jkt } = request
  return signJwt(keys.signing, 'at+jwt', {
    iss: issuer,
    sub: user.sub,
    aud: [audience],
    exp: nowSec + lifeSec,
    iat: nowSec,
    jti: randomUUID(),
    client_id: actors[0],
    auth_method: authMethod,
    scope: scopes.join(' '),
    scp: [...scopes],
    auth_time: user.authTimeSec,
    tsid: user.tsid,
    gid: user.gid,
    session_client_id: user.sessionClientId,
    act: actOf(actors),
    ...boundTo(jkt),
  })
}
