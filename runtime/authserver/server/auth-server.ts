/**
 * Assembles the authorization server. It has no listener. The host passes each path to `routes` before its own pipeline
 * (no bearer check, no Origin check). In the pipeline, the host uses `keys`, `isLive` and `upstreamTokens`.
 *
 * Any configuration error prevents startup, and all errors are reported together. A provider or store that does not
 * respond affects only readiness. Keys and secrets are reloaded every few seconds, so rotated files take effect without
 * a restart.
 * Source: docs/reference/specification/external-auth.md#embeddedAuthServer, spec.embeddedAuthServer;
 * docs/reference/specification/virtual-server.md, spec.authServerConfig.
 */
import { GatehouseError } from '../../../schemas/index.ts'
import {
  type AssertionPolicySettings,
  type AuthServerConfig,
  authServerViolations,
  type DeclaredClientSettings,
  type ExchangePolicySettings,
} from '../../config/index.ts'
import { type Fetch, type Log, silentLog } from '../../net/index.ts'
import type { EmbeddedAuthServer } from '../../incoming/index.ts'
import { fetchClientDocument, type JsonRecord, localKeys, readJson, send } from '../../oauth/index.ts'
import { makeTokenProofs } from '../endpoints/token-proof.ts'
import { makeMemoryStore, type Store } from '../../store/index.ts'
import { makeAddressOf } from './client-address.ts'
import { type AuthServerFetches, makeFetches } from './fetches.ts'
import { AssertionPolicies } from '../clients/assertion-policies.ts'
import { makeClientDocuments } from '../clients/client-documents.ts'
import { type ClientDirectory, makeClientDirectory } from '../clients/client-directory.ts'
import { makeClientKeySets } from '../clients/client-key-sets.ts'
import { DeclaredClients } from '../clients/declared-clients.ts'
import { ExchangePolicies } from '../clients/exchange/exchange-policies.ts'
import { IssuerKeys } from '../clients/issuer-keys.ts'
import { bundleViolations, SpiffeBundles } from '../clients/spiffe-clients.ts'
import type { AuthServerContext } from '../login/context.ts'
import { type AuthServerEvent, makeEvent } from '../model/events.ts'
import { takePermission } from '../storage/limits.ts'
import { makeRoutes } from './routes.ts'
import { watchRotation } from '../storage/rotation.ts'
import { makeState, type State } from '../storage/state.ts'
import { DelegatedTokens } from '../tokens/delegated-tokens.ts'
import { Grants } from '../tokens/grants.ts'
import type { KeyRing } from '../tokens/key-ring.ts'
import { MachineTokens } from '../tokens/machine-tokens.ts'
import { RingHolder, type RingHolderParts } from '../tokens/ring-holder.ts'
import { Sessions } from '../tokens/sessions.ts'
import { isLiveToken } from '../tokens/verify-access-token.ts'
import { OAuth2Upstream } from '../upstream/oauth2-upstream.ts'
import { OidcUpstream } from '../upstream/oidc-upstream.ts'
import type { Upstream } from '../upstream/upstream.ts'
import { upstreamFileViolations } from '../upstream/upstream-client.ts'
import { UpstreamTokenStore, type StoredUpstreamTokens } from '../upstream/upstream-token-store.ts'
import { makeUrls } from '../model/urls.ts'

export interface AuthServerParts {
  /** Namespace of the server, which its replicas share. The host closes it. */
  readonly store: Store
  /** Supplies the keys and secrets that are not configured. */
  readonly lent?: KeyRing | undefined
  readonly log?: Log
  /** Milliseconds since the epoch. Default Date.now. */
  readonly now?: () => number
  /** Fetch function for upstream providers, whose addresses are configured. */
  readonly fetch?: Fetch
  /**
   * Fetch function for clients' metadata documents and keys, whose addresses are untrusted. The function must be
   * guarded and must not follow redirects.
   */
  readonly documentFetch?: Fetch
  /** Returns the current declared clients. Default: the clients in the configuration. Throws INVALID_CONFIG. */
  readonly readClients?: () => readonly DeclaredClientSettings[]
  /** Returns the current policies for assertions. Default: the policies in the configuration. Throws INVALID_CONFIG. */
  readonly readAssertionPolicies?: () => readonly AssertionPolicySettings[]
  /** Returns the current policies for token exchange. Default: the policies in the configuration. Throws INVALID_CONFIG. */
  readonly readExchangePolicies?: () => readonly ExchangePolicySettings[]
  /** Audit sink. If absent, events are written to the log. */
  readonly onEvent?: (event: AuthServerEvent) => void
  /** How often to read mounted keys and declared clients. Default 5 s. 0 disables it. */
  readonly reloadEveryMs?: number
  /** How often to check for records that are sealed with an older secret. Default one minute. 0 disables the check. */
  readonly resealEveryMs?: number
  /** Delay before a new secret is used. Default two minutes, so that the other replicas have time to load it. */
  readonly resealAfterMs?: number
}

/** The authorization server that a host embeds. The host adds the configuration. */
export interface AuthServer extends Omit<EmbeddedAuthServer, 'config'> {
  readonly issuer: string
  readonly upstreamTokens: StoredUpstreamTokens
  /**
   * Reloads keys, secrets and declared clients. If the new values are invalid, throws INVALID_CONFIG and keeps the old
   * values.
   */
  reload(): Promise<void>
  /**
   * Ends a session and deletes its tokens, including upstream tokens. Returns false when the session does not exist.
   */
  endSession(sessionId: string): Promise<boolean>
  close(): Promise<void>
}

/** Throws an INVALID_CONFIG error that lists every error in the configuration, keys and secrets. */
export async function makeAuthServer(config: AuthServerConfig, parts: AuthServerParts): Promise<AuthServer> {
  const log = parts.log ?? silentLog
  const now = parts.now ?? Date.now
  const { store, lent, resealAfterMs: promoteAfterMs = 120_000 } = parts
  const ringParts = { store, lent, now, promoteAfterMs }
  const readClients = parts.readClients ?? (() => config.clients ?? [])
  const { ringHolder, declared } = await checkedStart(config, ringParts, readClients)
  const assertionPolicies = new AssertionPolicies(
    parts.readAssertionPolicies ?? (() => config.assertionPolicies ?? []),
    now,
  )
  const exchangePolicies = new ExchangePolicies(
    parts.readExchangePolicies ?? (() => config.exchangePolicies ?? []),
    now,
  )
  const issuerKeys = new IssuerKeys({ now, log })
  const isSettled = (): boolean => ringHolder.isSettled
  warnAboutDevelopmentSettings(ringHolder.ring, config, parts.store, log)

  const fetches = makeFetches(config, parts, log)
  const state = makeState(parts.store, () => ringHolder.ring.sealSecrets, {
    mayReseal: isSettled,
    onUnreadable: (key, reason) =>
      log.warn('reading a stored record failed', { kind: key.split(':', 1)[0], reason }),
  })
  const emit = parts.onEvent ?? ((event: AuthServerEvent) => log.info('authorization server', { event }))
  const sessions = new Sessions({ state, now, isDeclared: (id) => declared.get(id) !== undefined })
  const machineTokens = new MachineTokens({
    state,
    now,
    isDeclaredSince: (clientId, sinceSec) =>
      declared.isDeclaredSince(clientId, sinceSec) ||
      assertionPolicies.isBoundSince(clientId, sinceSec) ||
      exchangePolicies.isKnownSince(clientId, sinceSec),
  })
  const mayExchange = (clientId: string, otherId: string): boolean => declared.mayExchange(clientId, otherId)
  const delegatedTokens = new DelegatedTokens({
    machineTokens,
    mayExchange,
    findPolicy: (policyId) => exchangePolicies.get(policyId),
  })
  const keys = (): KeyRing => ringHolder.ring
  const upstreamParts = { now, log, state, issuer: config.issuer, groupClaim: config.upstreamFilter?.claim }
  const upstreams: readonly Upstream[] = config.upstreams.map((upstream) =>
    upstream.type === 'oidc'
      ? new OidcUpstream(upstream, { ...upstreamParts, fetch: fetches.upstream(upstream) })
      : new OAuth2Upstream(upstream, { ...upstreamParts, fetch: fetches.upstream(upstream) }),
  )
  const grants = new Grants({
    state,
    keys,
    sessions,
    now,
    lives: config,
    onReuse: (token, grant, source) =>
      emit(makeEvent(token === 'code' ? 'code_reused' : 'refresh_reused', { ...grant, source })),
  })
  const clients = makeClients(config, { store: parts.store, state, declared, issuerKeys, fetches, now, log })
  const context: AuthServerContext = {
    config,
    urls: makeUrls(config),
    state,
    keys,
    clients,
    declared,
    assertionPolicies,
    exchangePolicies,
    issuerKeys,
    upstreams,
    grants,
    sessions,
    machineTokens,
    delegatedTokens,
    tokenProofs: makeTokenProofs(config, { state, keys, now }),
    now,
    log,
    emit,
    addressOf: makeAddressOf(config.trustedProxies ?? []),
  }
  const accountsUrl = context.urls.accounts
  const primary = config.primaryUpstreamProvider
  const upstreamTokens = new UpstreamTokenStore({ ...context, primary, accountsUrl })
  for (const upstream of upstreams) upstream.start()
  const rotation = watchRotation({
    store: parts.store,
    sealed: state.sealed,
    secrets: () => ringHolder.ring.sealSecrets,
    now,
    log,
    everyMs: parts.resealEveryMs ?? 60_000,
    isSettled,
  })
  const reload = makeReloads({ ringHolder, ...context })
  const timer = reloadRegularly(reload, parts.reloadEveryMs ?? 5_000, log)

  return {
    issuer: config.issuer,
    accountsUrl,
    routes: makeRoutes(context),
    keys: localKeys(() => ringHolder.ring.jwks),
    upstreamTokens,
    dpop: {
      store: parts.store.namespace('dpop-resource:'),
      nonceSecrets: () => ringHolder.ring.sealSecrets,
    },
    isLive: (caller) => isLiveToken(caller, context),
    notReady: () => listReadinessProblems(parts.store, upstreams),
    secretUses: () => rotation.uses(),
    reload: () => reloadAll(reload),
    endSession: (sessionId) => sessions.endSession(sessionId),
    async close() {
      clearInterval(timer)
      rotation.close()
      for (const upstream of upstreams) upstream.close()
      await Promise.all([fetches.close(), issuerKeys.retain([])])
    },
  }
}

interface ClientParts {
  readonly store: Store
  readonly state: State
  readonly declared: DeclaredClients
  readonly issuerKeys: IssuerKeys
  readonly fetches: AuthServerFetches
  readonly now: () => number
  readonly log: Log
}

/** Creates the directory of clients, with their metadata documents and keys. */
function makeClients(
  config: AuthServerConfig,
  { store, state, declared, issuerKeys, fetches, now, log }: ClientParts,
): ClientDirectory {
  const mayFetch = async (host: string, caller: string | undefined): Promise<boolean> =>
    (await takePermission(store, 'document', { caller, host })) === 0
  const fetchKeys = (url: string): Promise<JsonRecord> => fetchClientKeys(url, fetches.keySet)
  const keySets = {
    // The operator configured these addresses, and the pause between fetches limits the rate. Untrusted clients must
    // not use up the permits.
    declared: makeClientKeySets({ now, mayFetch: async () => true, fetchKeys }),
    described: makeClientKeySets({ now, mayFetch, fetchKeys }),
  }
  const documents =
    config.cimd &&
    makeClientDocuments({
      config,
      cimd: config.cimd,
      now,
      log,
      fetchDocument: (url) => fetchClientDocument(url, { fetch: fetches.document }),
      mayFetch,
    })
  const bundles = new SpiffeBundles({ now, log })
  return makeClientDirectory({ state, declared, documents, keySets, issuerKeys, bundles, config, now })
}

/** Throws an INVALID_CONFIG error that lists every error in the settings, keys and secrets. */
export async function checkSettings(config: AuthServerConfig): Promise<void> {
  const ringParts = { store: makeMemoryStore(), now: Date.now, promoteAfterMs: 0 }
  await checkedStart(config, ringParts, () => config.clients ?? [])
}

interface Started {
  readonly ringHolder: RingHolder
  readonly declared: DeclaredClients
}

async function checkedStart(
  config: AuthServerConfig,
  parts: Omit<RingHolderParts, 'config'>,
  readClients: () => readonly DeclaredClientSettings[],
): Promise<Started> {
  const violations = [...authServerViolations(config), ...upstreamFileViolations(config)]
  const collect = (error: unknown): undefined => {
    if (!(error instanceof GatehouseError && error.code === 'INVALID_CONFIG')) throw error
    violations.push(error.message)
  }
  const ringHolder = await RingHolder.start({ ...parts, config }).catch(collect)
  let declared: DeclaredClients | undefined
  try {
    declared = new DeclaredClients(readClients, parts.now)
  } catch (error) {
    collect(error)
  }
  violations.push(...bundleViolations(declared?.all() ?? []))
  if (ringHolder && declared && violations.length === 0) return { ringHolder, declared }
  throw new GatehouseError('INVALID_CONFIG', { detail: `authorization server: ${violations.join('; ')}` })
}

type Reloads = Readonly<Record<'keys' | 'clients' | 'inboundGrants', () => Promise<void>>>

type ReloadParts = Pick<
  AuthServerContext,
  'declared' | 'assertionPolicies' | 'exchangePolicies' | 'issuerKeys' | 'machineTokens'
> & { readonly ringHolder: RingHolder }

function makeReloads(parts: ReloadParts): Reloads {
  const { ringHolder, declared, assertionPolicies, exchangePolicies, issuerKeys, machineTokens } = parts
  const storeRemoval = (clientId: string): Promise<void> => machineTokens.revokeAll(clientId)
  const retainIssuers = (): Promise<void> =>
    issuerKeys.retain([
      ...assertionPolicies.issuers(),
      ...exchangePolicies.all().map(({ issuer }) => issuer),
      ...declared.issuers(),
    ])
  return {
    keys: () => ringHolder.reload(),
    async clients() {
      await declared.reload(storeRemoval)
      await retainIssuers()
    },
    async inboundGrants() {
      await Promise.all([assertionPolicies.reload(storeRemoval), exchangePolicies.reload(storeRemoval)])
      await retainIssuers()
    },
  }
}

/** Invalid keys must not prevent the removal of a client, and invalid clients must not prevent the rotation of keys. */
async function reloadAll({ keys, clients, inboundGrants }: Reloads): Promise<void> {
  const results = await Promise.allSettled([keys(), clients(), inboundGrants()])
  for (const result of results) if (result.status === 'rejected') throw result.reason
}

const reloadFailures: Readonly<Record<keyof Reloads, string>> = {
  keys: 'the changed keys are invalid; keeping the old ones',
  clients: 'the changed declared clients are invalid; keeping the old ones',
  inboundGrants: 'the changed inboundGrants are invalid; keeping the old ones',
}

/** Logs each failure once, until it changes or the reload succeeds. */
function reloadRegularly(reload: Reloads, everyMs: number, log: Log): NodeJS.Timeout | undefined {
  if (everyMs <= 0) return undefined
  const reported = new Map<string, string>()
  async function run(part: keyof Reloads): Promise<void> {
    try {
      await reload[part]()
      reported.delete(part)
    } catch (error) {
      const message = String(error)
      if (reported.get(part) !== message) log.error(reloadFailures[part], { err: error })
      reported.set(part, message)
    }
  }
  const timer = setInterval(() => {
    for (const part of ['keys', 'clients', 'inboundGrants'] as const) void run(part)
  }, everyMs)
  timer.unref()
  return timer
}

/** Fetches the keys of a client. Rejects with OAuthClientError. */
async function fetchClientKeys(url: string, fetch: Fetch): Promise<JsonRecord> {
  const what = "the client's key set"
  const headers = { accept: 'application/jwk-set+json, application/json' }
  return readJson(what, await send(what, url, { headers }, { fetch }))
}

function warnAboutDevelopmentSettings(ring: KeyRing, config: AuthServerConfig, store: Store, log: Log): void {
  if (ring.ephemeral.signing) {
    log.warn(
      'NO SIGNING KEY IS CONFIGURED: using a temporary key. All tokens become invalid at the next restart. Development only.',
    )
  }
  if (ring.ephemeral.hmac) {
    log.warn(
      'NO HMAC SECRET IS CONFIGURED: using a temporary secret. Codes and refresh tokens become invalid at the next restart. Development only.',
    )
  }
  if (!config.consent)
    log.warn('CONSENT IS DISABLED: any client can act for every user who is signed in upstream. Tests only.')
  if (
    store.kind === 'memory' &&
    config.upstreams.some((upstream) => upstream.type === 'oauth2' && upstream.dcr)
  ) {
    log.warn(
      'upstream client registrations are stored in memory: this server registers again after every restart and on every replica',
    )
  }
}

async function listReadinessProblems(
  store: Store,
  upstreams: readonly Upstream[],
): Promise<readonly string[]> {
  const reasons: string[] = []
  try {
    await store.ping()
  } catch {
    reasons.push('the authorization server’s store does not respond')
  }
  // A login requires only the first provider.
  const [first] = upstreams
  if (first?.notReady !== undefined) reasons.push(`the upstream provider ${first.name} ${first.notReady}`)
  return reasons
}
