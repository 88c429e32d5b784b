/** The settings and services that an endpoint uses. `server/auth-server.ts` builds it once. */
import type { AuthServerConfig } from '../../config/index.ts'
import type { Exchange, Log } from '../../net/index.ts'
import type { MarkProof, Nonces } from '../../oauth/index.ts'
import type { ClientDirectory } from '../clients/client-directory.ts'
import type { AssertionPolicies } from '../clients/assertion-policies.ts'
import type { ExchangePolicies } from '../clients/exchange/exchange-policies.ts'
import type { DeclaredClients } from '../clients/declared-clients.ts'
import type { IssuerKeys } from '../clients/issuer-keys.ts'
import type { AuthServerEvent } from '../model/events.ts'
import type { Urls } from '../model/urls.ts'
import type { State } from '../storage/state.ts'
import type { DelegatedTokens } from '../tokens/delegated-tokens.ts'
import type { Grants } from '../tokens/grants.ts'
import type { KeyRing } from '../tokens/key-ring.ts'
import type { MachineTokens } from '../tokens/machine-tokens.ts'
import type { Sessions } from '../tokens/sessions.ts'
import type { Upstream } from '../upstream/upstream.ts'

/** Settings and state for DPoP proofs at the token endpoint. */
export interface TokenProofs {
  /** True if the server issues only bound tokens. */
  readonly isRequired: boolean
  readonly maxAgeMs: number
  /** Undefined: a proof can be used again until it is too old. */
  readonly mark: MarkProof | undefined
  /** Nonces for proofs. Undefined: no nonce is required. */
  readonly nonces: Nonces | undefined
}

export interface AuthServerContext {
  readonly config: AuthServerConfig
  readonly urls: Urls
  readonly state: State
  /** Returns the key ring in use, which a reload replaces. */
  readonly keys: () => KeyRing
  readonly clients: ClientDirectory
  readonly declared: DeclaredClients
  readonly assertionPolicies: AssertionPolicies
  readonly exchangePolicies: ExchangePolicies
  readonly issuerKeys: IssuerKeys
  /** Upstream providers in configured order. The first provider identifies the user. */
  readonly upstreams: readonly Upstream[]
  readonly grants: Grants
  readonly sessions: Sessions
  readonly machineTokens: MachineTokens
  readonly delegatedTokens: DelegatedTokens
  /** Undefined if the server issues no bound tokens. */
  readonly tokenProofs: TokenProofs | undefined
  /** Milliseconds since the epoch. */
  readonly now: () => number
  readonly log: Log
  readonly emit: (event: AuthServerEvent) => void
  /** Returns the network address of the client, taking trusted proxies into account. */
  readonly addressOf: (exchange: Exchange) => string
}

/** False when the server has no upstream provider. In that case, only machines get tokens. */
export function canSignIn({ upstreams }: Pick<AuthServerContext, 'upstreams'>): boolean {
  return upstreams.length > 0
}

export function nowSec({ now }: Pick<AuthServerContext, 'now'>): number {
  return Math.floor(now() / 1000)
}

/**
 * True for the providers that a user cannot deselect: the first provider, which identifies the user, and the provider
 * whose token the policies read.
 */
export function isRequired({ config, upstreams }: AuthServerContext, name: string): boolean {
  return name === upstreams[0]?.name || name === config.primaryUpstreamProvider
}

export function findUpstream({ upstreams }: AuthServerContext, name: string): Upstream | undefined {
  return upstreams.find((upstream) => upstream.name === name)
}
