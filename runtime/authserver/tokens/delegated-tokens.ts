/**
 * Builds and checks the delegation in an access token that lets declared clients act for a user.
 *
 * The subject is the user. `act` contains the acting clients, with the current client outermost. The chain begins with
 * a user who signed in here, or with a token from a trusted issuer:
 *
 * - `session_client_id` is the client that the user signed in to; `tsid` and `gid` identify the session and the grant.
 * - `exchange_policy` is the policy that accepted the issuer's token. If that token contained a client, `act` contains
 *   it innermost, with the issuer as `iss`.
 *
 * A delegated token is valid while the grant or the policy is live, every acting client is declared, and each acting
 * client may exchange the tokens of the client before it.
 * Source: RFC 8693 section 4.1; RFC 9068.
 */
import { isFields, issuerPrefix } from '../../../schemas/index.ts'
import { isMachineSubject, machineSubject } from '../model/identifiers.ts'
import type { MachineTokens } from './machine-tokens.ts'

/** Maximum number of declared clients in a chain. Longer chains are invalid, regardless of the configured maximum. */
const maxActors = 10

type Claims = Readonly<Record<string, unknown>>

/** A user who signed in here. */
interface SessionRoot {
  readonly kind: 'session'
  readonly tsid: string
  readonly gid: string
  /** The client that the user signed in to. */
  readonly sessionClientId: string
  readonly authTimeSec: number | undefined
}

/** A user of a trusted issuer. */
interface ExternalRoot {
  readonly kind: 'external'
  readonly policyId: string
  /** The client in the issuer's token. */
  readonly actor: ExternalActor | undefined
}

interface ExternalActor {
  readonly iss: string
  readonly sub: string
}

/** The start of a chain of acting clients: a session, or a token of a trusted issuer. */
export type DelegationRoot = SessionRoot | ExternalRoot

interface Chain {
  /** Ids of the acting clients, with the current client first. */
  readonly clients: readonly string[]
  readonly external: ExternalActor | undefined
}

interface ExchangePolicyFacts {
  readonly issuerUrl: string
  /** True when the client may exchange the issuer's tokens. */
  readonly allows: (clientId: string) => boolean
}

interface DelegatedTokensParts {
  readonly machineTokens: MachineTokens
  /** True when the client is declared and may exchange tokens that were issued to the other client. */
  readonly mayExchange: (clientId: string, otherId: string) => boolean
  /** Returns the policy with this id; undefined when it is not in the configuration. */
  readonly findPolicy: (policyId: string) => ExchangePolicyFacts | undefined
}

export class DelegatedTokens {
  readonly #parts: DelegatedTokensParts

  constructor(parts: DelegatedTokensParts) {
    this.#parts = parts
  }

  /** True while the acting clients may act for the user. Does not check the grant of a user who signed in here. */
  async isLive(claims: Claims): Promise<boolean> {
    const { act, client_id: clientId, iat, jti } = claims
    const chain = readChain(act)
    const root = chain && rootOf(claims, chain)
    if (!root || chain.clients.length === 0 || chain.clients[0] !== clientId) return false
    if (typeof iat !== 'number' || typeof jti !== 'string') return false
    const { machineTokens, mayExchange } = this.#parts
    const { clients } = chain
    const isAllowed = clients.every((id, index) => {
      const before = clients[index + 1]
      return before === undefined ? this.#mayBegin(id, root, claims) : mayExchange(id, before)
    })
    if (!isAllowed) return false
    const needed = root.kind === 'external' ? [...clients, root.policyId] : clients
    return machineTokens.isIssuedTo(needed, { iat, jti })
  }

  /** True when the first acting client may act for the user. */
  #mayBegin(clientId: string, root: DelegationRoot, { sub }: Claims): boolean {
    const { mayExchange, findPolicy } = this.#parts
    if (root.kind === 'session') return mayExchange(clientId, root.sessionClientId)
    const policy = findPolicy(root.policyId)
    if (!policy?.allows(clientId)) return false
    const { issuerUrl } = policy
    const isOwnUser = typeof sub === 'string' && sub.startsWith(issuerPrefix(issuerUrl))
    return isOwnUser && (root.actor === undefined || root.actor.iss === issuerUrl)
  }
}

const delegationClaims = ['act', 'session_client_id', 'exchange_policy'] as const

/** True for a delegated token, even if its delegation claims are malformed. */
export function isDelegated(claims: object): boolean {
  return delegationClaims.some((name) => Object.hasOwn(claims, name))
}

/** Returns the acting clients. Without `act`, the list is empty. Returns undefined if the claim is malformed. */
function readChain(act: unknown): Chain | undefined {
  const clients: string[] = []
  for (let next = act; next !== undefined; ) {
    if (!isFields(next)) return undefined
    const { sub, iss, act: earlier } = next
    if (typeof sub !== 'string') return undefined
    if (iss !== undefined) {
      const isLast = typeof iss === 'string' && earlier === undefined && clients.length > 0
      return isLast ? { clients, external: { iss, sub } } : undefined
    }
    if (!isMachineSubject(sub) || clients.length === maxActors) return undefined
    clients.push(sub.slice(machineSubject('').length))
    next = earlier
  }
  return { clients, external: undefined }
}

/** Returns undefined if the claims describe neither a session nor an external root. */
function rootOf(claims: Claims, { clients, external }: Chain): DelegationRoot | undefined {
  const { tsid, gid, client_id: clientId, auth_time: authTime, exchange_policy: policyId } = claims
  const { session_client_id: first } = claims
  if (policyId !== undefined) {
    const isExternal = typeof policyId === 'string' && [tsid, gid, first].every((id) => id === undefined)
    return isExternal ? { kind: 'external', policyId, actor: external } : undefined
  }
  // The token of the client that the user signed in to has neither a chain nor `session_client_id`.
  const sessionClientId = first ?? (clients.length === 0 ? clientId : undefined)
  if (typeof tsid !== 'string' || typeof gid !== 'string' || typeof sessionClientId !== 'string')
    return undefined
  if (external !== undefined) return undefined
  const authTimeSec = typeof authTime === 'number' ? authTime : undefined
  return { kind: 'session', tsid, gid, sessionClientId, authTimeSec }
}

/** Returns the delegation of a user's token that this server issued; undefined if the token belongs to no user. */
export function delegationOf(
  claims: Claims,
): { readonly clients: readonly string[]; readonly root: DelegationRoot } | undefined {
  const chain = readChain(claims['act'])
  const root = chain && rootOf(claims, chain)
  return root && { clients: chain.clients, root }
}

interface ActClaim {
  readonly iss?: string
  readonly sub: string
  readonly act?: ActClaim
}

/** Builds `act`, with the current client first. */
function actOf([current = '', ...earlier]: readonly string[], external: ExternalActor | undefined): ActClaim {
  const act = earlier.length === 0 ? external : actOf(earlier, external)
  return { sub: machineSubject(current), ...(act && { act }) }
}

/**
 * Returns the claims of a delegated token. `actors` contains the ids of the acting clients, with the current client
 * first.
 */
export function claimsOfDelegation(actors: readonly string[], root: DelegationRoot): Claims {
  if (root.kind === 'external') return { exchange_policy: root.policyId, act: actOf(actors, root.actor) }
  const { tsid, gid, sessionClientId, authTimeSec } = root
  return {
    auth_time: authTimeSec,
    tsid,
    gid,
    session_client_id: sessionClientId,
    act: actOf(actors, undefined),
  }
}
