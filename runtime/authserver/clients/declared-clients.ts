/**
 * Clients that the operator declared. Such clients get tokens for themselves and cannot sign users in.
 *
 * The file and its secrets are reloaded every few seconds. Removing a client invalidates its tokens immediately. If the
 * client is added again, tokens from before the removal stay invalid: `MachineTokens` stores the removal for every
 * replica. The removal is not stored if no process was running while the client was absent from the file. A client's
 * tokens also become invalid when its identity at its issuer changes, or when it may no longer exchange another
 * client's tokens.
 * Source: RFC 6749 sections 2.3.1 and 4.4; RFC 7523 section 2.2; RFC 8693.
 */
import { timingSafeEqual } from 'node:crypto'
import { GatehouseError, matchesPrincipal } from '../../../schemas/index.ts'
import type {
  DeclaredClientSettings,
  FederatedSettings,
  SpiffeSettings,
  TrustedIssuerSettings,
} from '../../config/index.ts'
import { sha256 } from '../model/identifiers.ts'
import { claimMatcher } from './assertion-policies.ts'
import type { AssertionKeys } from './client-key-sets.ts'
import { PendingRemovals } from './pending-removals.ts'

/** Identity of a client at a trusted issuer. */
export interface FederatedClient extends FederatedSettings {
  readonly matches: (claims: Readonly<Record<string, unknown>>) => boolean
}

export interface MachineClient {
  readonly id: string
  readonly kind: 'declared'
  /** SHA-256 of each secret. Empty for a client without a secret. */
  readonly secretHashes: readonly string[]
  readonly keys: AssertionKeys | undefined
  readonly federated: FederatedClient | undefined
  readonly spiffe: SpiffeSettings | undefined
  readonly scopes: readonly string[]
  readonly resources: readonly string[]
  readonly tokenMs: number
  /**
   * Clients whose users' tokens this client may exchange; `*` means all clients. Empty: this client cannot exchange
   * tokens.
   */
  readonly subjectClients: readonly string[]
  /** True if the client gets only tokens that are bound to a key. */
  readonly isBound: boolean
  /** True if the client gets only tokens that are bound to its certificate. */
  readonly isCertificateBound: boolean
}

/** True when the client may exchange tokens that were issued to the other client, or to itself. */
function mayExchangeFor({ id, subjectClients }: MachineClient, otherId: string): boolean {
  if (subjectClients.length === 0) return false
  return otherId === id || subjectClients.includes('*') || subjectClients.includes(otherId)
}

export class DeclaredClients {
  readonly #read: () => readonly DeclaredClientSettings[]
  readonly #now: () => number
  #clients: Clients
  readonly #removals = new PendingRemovals()

  /** Throws an INVALID_CONFIG error that lists every unusable secret. */
  constructor(read: () => readonly DeclaredClientSettings[], now: () => number) {
    this.#read = read
    this.#now = now
    const { clients, violations } = load(read())
    throwIfAny(violations)
    this.#clients = clients
  }

  get(clientId: string): MachineClient | undefined {
    return this.#clients.get(clientId)
  }

  /** Returns the client whose tokens at this issuer have exactly this subject. */
  findFederated({ issuer, subject }: { issuer: string; subject: string }): MachineClient | undefined {
    return this.all().find(
      ({ federated }) => federated?.issuer.issuerUrl === issuer && federated.subject === subject,
    )
  }

  /** Returns the client to which the workload with this SPIFFE ID belongs. */
  findWorkload(spiffeId: string): MachineClient | undefined {
    return this.all().find(({ spiffe }) => spiffe && matchesPrincipal(spiffe.principalPattern, spiffeId))
  }

  /** Returns the trusted issuers of the clients. */
  issuers(): readonly TrustedIssuerSettings[] {
    return this.all().flatMap(({ federated }) => federated?.issuer ?? [])
  }

  all(): readonly MachineClient[] {
    return [...this.#clients.values()]
  }

  /**
   * Reloads clients and secrets. Keeps all previous clients when the file is invalid, and the previous version of a
   * client when its secrets are unusable. Rejects with INVALID_CONFIG in both cases. Calls `storeRemoval` for each
   * removed client. If `storeRemoval` rejects, the next reload calls it again.
   */
  async reload(storeRemoval: (clientId: string) => Promise<void>): Promise<void> {
    const { clients: next, violations } = load(this.#read(), this.#clients)
    const removed = [...this.#clients.values()].filter((client) => losesAccess(client, next.get(client.id)))
    this.#removals.record(
      removed.map(({ id }) => id),
      this.#now(),
    )
    this.#clients = next
    await this.#removals.store(storeRemoval)
    throwIfAny(violations)
  }

  /** True when the client is declared and may exchange tokens that were issued to the other client. */
  mayExchange(clientId: string, otherId: string): boolean {
    const client = this.#clients.get(clientId)
    return client !== undefined && mayExchangeFor(client, otherId)
  }

  /** True when the client is declared and no removal after this time is waiting to be stored. */
  isDeclaredSince(clientId: string, sinceSec: number): boolean {
    return this.#clients.has(clientId) && !this.#removals.hasSince(clientId, sinceSec)
  }
}

/** True when the client is removed, has a different identity, or may no longer exchange another client's tokens. */
function losesAccess(
  { subjectClients, federated, spiffe }: MachineClient,
  next: MachineClient | undefined,
): boolean {
  if (!next || subjectClients.some((id) => !mayExchangeFor(next, id))) return true
  if (spiffe && spiffe.principalPattern !== next.spiffe?.principalPattern) return true
  return federated !== undefined && !isSameIdentity(federated, next.federated)
}

function isSameIdentity(a: FederatedClient, b: FederatedClient | undefined): boolean {
  return a.issuer.issuerUrl === b?.issuer.issuerUrl && a.subject === b.subject && a.matcher === b.matcher
}

function throwIfAny(violations: readonly string[]): void {
  if (violations.length > 0) throw new GatehouseError('INVALID_CONFIG', { detail: violations.join('; ') })
}

type Clients = ReadonlyMap<string, MachineClient>

/** If a client's secrets are unusable, replaces the client with its previous version, if there is one. */
function load(
  settings: readonly DeclaredClientSettings[],
  previous: Clients = new Map(),
): { readonly clients: Clients; readonly violations: readonly string[] } {
  const violations: string[] = []
  const clients = settings.flatMap((client) => {
    const before = violations.length
    const read = toClient(client, violations)
    const usable = violations.length === before ? read : previous.get(client.clientId)
    return usable ? [[usable.id, usable] as const] : []
  })
  return { clients: new Map(clients), violations }
}

function toClient(settings: DeclaredClientSettings, violations: string[]): MachineClient {
  const { clientId, secrets = [], jwks, jwksUri, signingAlg, scopes, resources, tokenMs } = settings
  const { subjectClients = [], federated } = settings
  const secretHashes = secrets.flatMap((secret) => {
    try {
      return [sha256(secret())]
    } catch (error) {
      if (!(error instanceof GatehouseError)) throw error
      violations.push(error.message)
      return []
    }
  })
  const location = jwks ? { jwks: jwks.keys } : jwksUri === undefined ? undefined : { jwksUri }
  return {
    id: clientId,
    kind: 'declared',
    secretHashes,
    keys: location && { ...location, algs: [signingAlg] },
    federated: federated && { ...federated, matches: subjectMatcher(federated) },
    spiffe: settings.spiffe,
    scopes,
    resources,
    tokenMs,
    subjectClients,
    isBound: settings.isBound ?? false,
    isCertificateBound: settings.isCertificateBound ?? false,
  }
}

function subjectMatcher({ subject, matcher = 'false' }: FederatedSettings): FederatedClient['matches'] {
  return subject === undefined ? claimMatcher(matcher) : ({ sub }) => sub === subject
}

/** Compares with every secret. Each comparison takes constant time. */
export function hasSecret({ secretHashes }: MachineClient, secret: string): boolean {
  const given = Buffer.from(sha256(secret))
  return secretHashes.filter((hash) => timingSafeEqual(Buffer.from(hash), given)).length > 0
}
