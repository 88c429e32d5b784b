/**
 * Finds and authenticates clients of all kinds, and extends the lifetime of registrations that are in use.
 *
 * A declared client takes precedence over a registration with the same id. A declared client cannot conflict with a
 * metadata document, whose id is a URL.
 * Source: RFC 6749 sections 2.3 and 3.2.1, RFC 7521 section 4.2, RFC 7591, client-id metadata documents.
 */
import { timingSafeEqual } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { GatehouseError } from '../../../schemas/index.ts'
import type { AuthServerConfig } from '../../config/index.ts'
import { assertionAlgs, isTransient, OAuthClientError } from '../../oauth/index.ts'
import { OAuthError } from '../model/oauth-error.ts'
import { takePermission, tooManyRequests, usedClientMs } from '../storage/limits.ts'
import type { MachineAuthMethod, TokenAuthMethod, RegisteredClient } from '../model/records.ts'
import type { State } from '../storage/state.ts'
import {
  assertionViolation,
  replayMs,
  type VerifiedClientAssertion,
  verifyAssertion,
} from './client-assertion.ts'
import type { ClientDocuments } from './client-documents.ts'
import type { AssertionKeys, ClientKeySets } from './client-key-sets.ts'
import { type MachineClient, type DeclaredClients, hasSecret } from './declared-clients.ts'
import { claimedIdentity, verifyFederatedAssertion } from './federated-clients.ts'
import type { IssuerKeys } from './issuer-keys.ts'
import { type SpiffeBundles, verifySvid } from './spiffe-clients.ts'
import { clientScopes } from '../model/scopes.ts'
import { sha256 } from '../model/identifiers.ts'

/** Client credentials from a request. */
export interface ClientCredentials {
  readonly id: string
  /** True if the request contains the client id. Otherwise, the subject of the assertion is the client id. */
  readonly isNamed: boolean
  readonly secret: string | undefined
  readonly assertion?: string | undefined
  readonly method: TokenAuthMethod | 'spiffe_jwt'
  /** True when the request has a Basic header, in which case an error response needs a challenge. */
  readonly isBasic: boolean
}

/** The client that a request authenticated as. */
export type AuthenticatedClient = RegisteredClient | AuthenticatedMachine

export type AuthenticatedMachine = MachineClient & {
  readonly authMethod: MachineAuthMethod
  /** SPIFFE ID of the workload; undefined when the client is the subject of its own tokens. */
  readonly spiffeId?: string
}

export interface ClientDirectory {
  /**
   * Returns the client with the scopes that it may currently request, or undefined when it is unknown. Throws
   * OAuthError invalid_client when its document is rejected, and 503 when it cannot be fetched. The limits for `caller`
   * apply.
   */
  find(clientId: string, caller?: string): Promise<RegisteredClient | undefined>
  /**
   * Returns the client that sent a token, revocation or introspection request. Throws OAuthError invalid_client, 429,
   * and 503 when the client's keys or the store are unavailable. The limits for `caller` apply.
   */
  authenticate(credentials: ClientCredentials, caller: string): Promise<AuthenticatedClient>
  /** Marks a registered client as used, so that its registration does not expire after the first day. */
  renew(client: RegisteredClient): Promise<void>
}

const renewEveryMs = 3_600_000

export interface ClientDirectoryParts {
  readonly state: State
  readonly declared: DeclaredClients
  readonly documents: ClientDocuments | undefined
  /** Separate caches, so that clients with documents cannot displace the declared clients' keys. */
  readonly keySets: Readonly<Record<KeySetKind, ClientKeySets>>
  /** Keys of the issuers whose tokens can authenticate clients. */
  readonly issuerKeys: IssuerKeys
  readonly bundles: SpiffeBundles
  readonly config: Pick<AuthServerConfig, 'issuer' | 'scopesSupported' | 'baselineClientScopes'>
  readonly now: () => number
}

export function makeClientDirectory(parts: ClientDirectoryParts): ClientDirectory {
  const { state, declared, documents, config, now } = parts
  const renewed = new LRUCache<string, number>({ max: 10_000 })

  async function find(clientId: string, caller?: string): Promise<RegisteredClient | undefined> {
    if (documents?.accepts(clientId)) return documents.find(clientId, caller)
    if (declared.get(clientId)) return undefined
    const client = clientId.length > 128 ? undefined : await state.clients.get(clientId)
    // Recomputes the scopes, because the configuration may have changed since the registration.
    return client && { ...client, scopes: clientScopes(client.scopes, config) }
  }

  // An unknown client, a wrong secret and a wrong method all get the same response, so that the response does not
  // reveal which clients exist.
  async function authenticate(given: ClientCredentials, caller: string): Promise<AuthenticatedClient> {
    const own = findDeclared(given, declared)
    if (own) return authenticateDeclared(own, { ...given, id: own.id }, { ...parts, caller })
    // Only a declared client can be a workload.
    if (given.method === 'spiffe_jwt') throw clientAuthError(given, 'unknown client', { isKnown: false })
    if (documents?.accepts(given.id)) return authenticateDescribed(given, { ...parts, documents, caller })
    const client = await find(given.id)
    if (!client) throw clientAuthError(given, 'unknown client', { isKnown: false })
    if (client.authMethod !== given.method) throw clientAuthError(given, wrongMethod)
    if (!matchesSecret(client, given.secret)) throw clientAuthError(given, 'wrong secret')
    return client
  }

  async function renew(client: RegisteredClient): Promise<void> {
    if (client.kind !== 'dcr') return
    const last = renewed.get(client.id)
    if (last !== undefined && now() - last < renewEveryMs) return
    renewed.set(client.id, now())
    if (client.used) {
      await state.clients.touch(client.id, usedClientMs)
      return
    }
    // Compares with the stored record, because a deleted registration must stay deleted.
    const seen = await state.clients.read(client.id)
    if (seen) await state.clients.swap(client.id, seen, { ...seen.value, used: true }, usedClientMs)
  }

  return { find, authenticate, renew }
}

type KeySetKind = 'declared' | 'described'
type AssertionKind = KeySetKind | 'federated' | 'workload'

const limits = {
  declared: 'assertion',
  federated: 'assertion',
  described: 'describedAssertion',
  // The number of workloads of a client is unlimited, as is the number of subjects of an issuer.
  workload: 'grantAssertion',
} as const

const wrongMethod = 'wrong authentication method'
const alreadyUsed = 'the assertion has already been used'

type AuthenticationParts = ClientDirectoryParts & { readonly caller: string }

/** Without a client id, a JWT-SVID or the token of a trusted issuer identifies the client. */
function findDeclared(
  { id, isNamed, assertion, method }: ClientCredentials,
  declared: DeclaredClients,
): MachineClient | undefined {
  if (method === 'spiffe_jwt') return isNamed ? declared.get(id) : declared.findWorkload(id)
  const identity = isNamed || assertion === undefined ? undefined : claimedIdentity(assertion)
  return (identity && declared.findFederated(identity)) ?? declared.get(id)
}

async function authenticateDeclared(
  client: MachineClient,
  given: ClientCredentials,
  parts: AuthenticationParts,
): Promise<AuthenticatedMachine> {
  const authenticated = { ...client, authMethod: given.method }
  const { keys, federated, spiffe } = client
  if ((given.method === 'spiffe_jwt') !== (spiffe !== undefined)) throw clientAuthError(given, wrongMethod)
  if (spiffe) {
    const { bundles, config, now } = parts
    const rules = { self: config.issuer, bundles, now }
    const verify = (assertion: string) => verifySvid(assertion, spiffe, rules)
    const { spiffeId } = await checkAssertion(given, { verify, kind: 'workload' }, parts)
    return { ...authenticated, spiffeId }
  }
  if (federated) {
    const { issuerKeys, config, now } = parts
    const rules = { self: config.issuer, issuerKeys, now }
    const verify = (assertion: string) => verifyFederatedAssertion(assertion, federated, rules)
    await checkAssertion(given, { verify, kind: 'federated' }, parts)
    return { ...authenticated, authMethod: 'federated' }
  }
  if (keys) {
    await checkAssertion(given, ownAssertion(given, { keys, kind: 'declared' }, parts), parts)
    return authenticated
  }
  if (given.secret === undefined) throw clientAuthError(given, wrongMethod)
  if (!hasSecret(client, given.secret)) throw clientAuthError(given, 'wrong secret')
  return authenticated
}

async function authenticateDescribed(
  given: ClientCredentials,
  parts: AuthenticationParts & { readonly documents: ClientDocuments },
): Promise<RegisteredClient> {
  // The grant contains the document's values, so the document's host need not be available for every refresh. It also
  // contains the client's authentication method (tokens/grants.ts).
  if (given.method === 'none') return makeUnverifiedClient(given.id, 'none')
  if (given.assertion === undefined) throw clientAuthError(given, wrongMethod)
  // Checks the assertion first, so that a request that cannot succeed causes no fetch.
  const violation = assertionViolation(given.assertion, assertionAlgs)
  if (violation !== undefined) throw clientAuthError(given, violation)
  const keys = await parts.documents.findKeys(given.id, parts.caller)
  if (!keys) throw clientAuthError(given, wrongMethod)
  await checkAssertion(given, ownAssertion(given, { keys, kind: 'described' }, parts), parts)
  return makeUnverifiedClient(given.id, 'private_key_jwt')
}

interface AssertionCheck<T extends VerifiedClientAssertion> {
  /** Returns why the assertion is rejected, in fixed wording. */
  readonly verify: (assertion: string) => Promise<T | string>
  readonly kind: AssertionKind
}

/** Returns the check of an assertion that the client signed. */
function ownAssertion(
  { id: clientId }: ClientCredentials,
  { keys, kind }: { readonly keys: AssertionKeys; readonly kind: KeySetKind },
  { keySets, config, now, caller }: AuthenticationParts,
): AssertionCheck<VerifiedClientAssertion> {
  const find = keySets[kind].finder(keys, caller)
  const rules = { clientId, issuer: config.issuer, algs: keys.algs, find }
  return { verify: (assertion) => verifyAssertion(assertion, { ...rules, nowMs: now() }), kind }
}

/** Verifies the assertion and marks it as used. Call this last, because no later check may reject the client. */
async function checkAssertion<T extends VerifiedClientAssertion>(
  given: ClientCredentials,
  { verify, kind }: AssertionCheck<T>,
  { state, now, caller }: AuthenticationParts,
): Promise<T> {
  const { id: clientId, assertion } = given
  if (assertion === undefined) throw clientAuthError(given, wrongMethod)
  let verified
  try {
    verified = await verify(assertion)
  } catch (error) {
    // A reload can name a file that does not exist yet.
    const isUnusable = error instanceof GatehouseError && error.code === 'INVALID_CONFIG'
    if (!(error instanceof OAuthClientError) && !isUnusable) throw error
    if (isUnusable || isTransient(error)) throw new GatehouseError('AUTH_UNAVAILABLE', { cause: error })
    throw clientAuthError(given, "the client's keys cannot be read")
  }
  if (typeof verified === 'string') throw clientAuthError(given, verified)
  const { mark, isOnce, origin } = verified
  // Checked before the limit, so that a stolen assertion that has already been used cannot use up the client's permits.
  if (isOnce && (await state.store.get(mark)) !== undefined) throw clientAuthError(given, alreadyUsed)
  const taken = { caller, host: origin?.subject ?? clientId, ...(origin && { issuer: origin.issuer }) }
  const waitMs = await takePermission(state.store, limits[kind], taken)
  if (waitMs > 0) throw tooManyRequests(waitMs)
  if (!isOnce) return verified
  const ttlMs = replayMs(verified, now())
  // The number of undeclared clients, and of subjects in their tokens, is unlimited, and some of these records are kept
  // for a day. The records must not displace those of signed-in users.
  const yields = kind !== 'declared'
  // Only one of several simultaneous requests succeeds.
  const isFirst = await state.store.set(mark, '1', { ttlMs, onlyIf: 'absent', yields })
  if (!isFirst) throw clientAuthError(given, alreadyUsed)
  return verified
}

/** Returns a client with only its id and its verified method, because its grant determines everything else. */
function makeUnverifiedClient(id: string, authMethod: TokenAuthMethod): RegisteredClient {
  return {
    id,
    kind: 'cimd',
    redirectUris: [],
    grantTypes: [],
    scopes: [],
    authMethod,
    applicationType: 'native',
    issuedAtSec: 0,
    used: true,
  }
}

/**
 * Returns the error for every failed authentication, with a challenge when the request has a Basic header. `reason` is
 * for the audit log.
 */
export function clientAuthError(
  { isBasic, id }: Pick<ClientCredentials, 'isBasic'> & { readonly id?: string },
  reason: string,
  { isKnown = true }: { readonly isKnown?: boolean } = {},
): OAuthError {
  const challenge = { 'WWW-Authenticate': 'Basic realm="token", charset="UTF-8"' }
  return new OAuthError('invalid_client', 'client authentication failed', {
    rejection: { reason, ...(isKnown && id !== undefined ? { clientId: id } : {}) },
    ...(isBasic ? { headers: challenge } : {}),
  })
}

function matchesSecret(client: RegisteredClient, secret: string | undefined): boolean {
  if (client.authMethod === 'none') return secret === undefined
  if (client.secretHash === undefined || secret === undefined) return false
  return timingSafeEqual(Buffer.from(client.secretHash), Buffer.from(sha256(secret)))
}
