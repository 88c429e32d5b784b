/** Checks a remote MCP server hop by hop, in the order in which a client reaches the hops. */
import type { LookupAll, ProxyEnvironment } from '../../../net/index.ts'
import { makePeers } from '../../../toolkit/mcp-client/peers.ts'
import { type Profile, profileNamed, profileOf } from '../profiles/index.ts'
import type { Finding } from '../report/finding.ts'
import { makeClean } from '../report/text.ts'
import { type Check, walk } from '../report/walk.ts'
import { directoryChecks } from '../directory/checks.ts'
import type { DirectoryName } from '../directory/model.ts'
import { checkBrowser } from '../sign-in/authorize.ts'
import { checkLoginClient } from '../sign-in/client.ts'
import { cleanUpLogin } from '../sign-in/clean-up.ts'
import type { SignInOptions } from '../sign-in/state.ts'
import { checkCode, checkGranted, checkRenewal } from '../sign-in/tokens.ts'
import {
  checkEndpoints,
  checkIssuer,
  checkIssuerClock,
  checkIssuerDocument,
  checkIssuerHost,
} from './authorization-server.ts'
import { checkClient } from './client.ts'
import { checkCors } from './cors.ts'
import { checkChallenge, checkClock, checkEndpoint } from './endpoint.ts'
import { type RemoteFacts, type RemoteOptions, shownUrl } from './facts.ts'
import {
  checkFlow,
  checkKeys,
  checkPkce,
  checkRefresh,
  checkRegistration,
  checkScopes,
  checkTokenAuth,
  tryRegistration,
} from './login.ts'
import { checkAddress, checkConnection, checkName, checkTls } from './network.ts'
import { checkResource, checkResourceDocument } from './resource.ts'
import { checkAffinity, checkInitialize, checkTools, checkUnknownSession, endSession } from './session.ts'
import { checkStream } from './stream.ts'
import { checkToken } from './token.ts'
import { skipped } from '../report/finding.ts'

type Row = Check<RemoteFacts>

const target = ({ target: url }: RemoteFacts): string => shownUrl(url)
const issuer = ({ issuer: named, target: url }: RemoteFacts): string => named ?? url.origin

const network: readonly Row[] = [
  {
    id: 'dns',
    hop: 'network',
    needs: [],
    object: ({ target: url }) => url.hostname,
    async run(facts) {
      const { outcome, addresses } = await checkName(facts.target, facts.peers)
      facts.addresses = addresses
      return outcome
    },
  },
  {
    id: 'address',
    hop: 'network',
    needs: ['dns'],
    object: ({ target: url }) => url.hostname,
    run: async ({ target: url, addresses = [] }) => checkAddress(url, addresses),
  },
  {
    id: 'connect',
    hop: 'network',
    needs: ['dns'],
    object: ({ target: url }) => url.host,
    run: ({ target: url, addresses = [], peers }) => checkConnection(url, addresses, peers.timeoutMs),
  },
  {
    id: 'tls',
    hop: 'network',
    needs: ['connect'],
    object: ({ target: url }) => url.host,
    run: ({ target: url, addresses = [], peers }) => checkTls(url, addresses, peers),
  },
]

const endpoint: readonly Row[] = [
  { id: 'endpoint', hop: 'MCP endpoint', needs: ['tls'], object: target, run: checkEndpoint },
  {
    id: 'clock',
    hop: 'MCP endpoint',
    needs: ['endpoint'],
    object: target,
    run: async ({ first }) => checkClock(first, 'clock.skew'),
  },
  { id: 'cors', hop: 'MCP endpoint', needs: ['endpoint'], object: target, run: checkCors },
  { id: 'challenge', hop: 'MCP endpoint', needs: ['endpoint'], object: target, run: checkChallenge },
]

/** Skips a check when the server does not require a login. */
function skipIfOpen(row: Row): Row {
  return {
    ...row,
    run: (facts) =>
      facts.isOpen === true ? Promise.resolve(skipped('the server requires no login')) : row.run(facts),
  }
}

const login: readonly Row[] = (
  [
    ['resource-document', 'resource metadata', ['challenge'], target, checkResourceDocument],
    ['resource', 'resource metadata', ['resource-document'], target, checkResource],
    ['issuer-host', 'authorization server', ['resource-document'], issuer, checkIssuerHost],
    ['issuer-document', 'authorization server', ['issuer-host'], issuer, checkIssuerDocument],
    ['issuer', 'authorization server', ['issuer-document'], issuer, checkIssuer],
    ['issuer-clock', 'authorization server', ['issuer-document'], issuer, checkIssuerClock],
    ['endpoints', 'authorization server', ['issuer-document'], issuer, checkEndpoints],
    ['flow', 'login', ['endpoints'], issuer, checkFlow],
    ['pkce', 'login', ['endpoints'], issuer, checkPkce],
    ['registration', 'login', ['endpoints'], issuer, checkRegistration],
    ['register', 'login', ['registration'], issuer, tryRegistration],
    ['token-auth', 'login', ['endpoints'], issuer, checkTokenAuth],
    ['scopes', 'login', ['endpoints'], issuer, checkScopes],
    ['refresh', 'login', ['endpoints'], issuer, checkRefresh],
    ['keys', 'login', ['endpoints'], issuer, checkKeys],
    ['client', 'login', ['endpoints'], issuer, checkClient],
  ] as const
).map(([id, hop, needs, object, run]) => skipIfOpen({ id, hop, needs, object, run }))

/** Checks for --login. These checks replace the registered-client check. */
const signIn: readonly Row[] = (
  [
    ['login-client', 'login', ['endpoints', 'issuer', 'flow', 'registration'], issuer, checkLoginClient],
    ['client', 'login', ['login-client'], issuer, checkClient],
    ['browser', 'login', ['client'], issuer, checkBrowser],
    ['code', 'token', ['browser'], issuer, checkCode],
    ['token', 'token', ['code'], target, checkToken],
    ['granted', 'token', ['code'], issuer, checkGranted],
    ['renewal', 'token', ['code'], issuer, checkRenewal],
  ] as const
).map(([id, hop, needs, object, run]) => skipIfOpen({ id, hop, needs, object, run }))

const end: Row = { id: 'give-back', hop: 'end', needs: [], object: issuer, run: cleanUpLogin, always: true }

const token: Row = { id: 'token', hop: 'token', needs: ['endpoint'], object: target, run: checkToken }

const session: readonly Row[] = [
  { id: 'initialize', hop: 'session', needs: ['endpoint'], object: target, run: checkInitialize },
  { id: 'tools', hop: 'session', needs: ['initialize'], object: target, run: checkTools },
  { id: 'unknown-session', hop: 'session', needs: ['initialize'], object: target, run: checkUnknownSession },
  { id: 'affinity', hop: 'session', needs: ['initialize'], object: target, run: checkAffinity },
  { id: 'stream', hop: 'stream', needs: ['initialize'], object: target, run: checkStream },
]

/**
 * Checks that run for a gateway's backend, which has its own credential. These checks test only whether the backend can
 * be reached.
 */
const backendChecks: readonly Row[] = [
  ...network,
  ...endpoint.filter(({ id }) => id === 'endpoint' || id === 'clock'),
]

/**
 * Ids of the checks that run for a standalone issuer. These checks test the metadata and keys that a token validator
 * needs, but do not test a login.
 */
const issuerIds: ReadonlySet<string> = new Set([
  'issuer-document',
  'issuer',
  'issuer-clock',
  'endpoints',
  'keys',
])
const issuerChecks: readonly Row[] = [
  ...network,
  ...login
    .filter(({ id }) => issuerIds.has(id))
    .map((row) => (row.id === 'issuer-document' ? { ...row, needs: ['tls'] } : row)),
]

/** Scope of the checks: everything that a client uses, a backend behind a gateway, or only an issuer. */
type Depth = 'client' | 'backend' | 'issuer'

const checksOf: Readonly<Record<Depth, readonly Row[]>> = {
  client: [...network, ...endpoint, ...login, token, ...session],
  backend: backendChecks,
  issuer: issuerChecks,
}

/** Checks with `login`, without the clean-up at the end. */
const loginChecks: readonly Row[] = [
  ...network,
  ...endpoint,
  ...login.filter(({ id }) => id !== 'client' && id !== 'register'),
  ...signIn,
  ...session,
]

export interface ExamineOptions extends Partial<RemoteOptions> {
  readonly target: URL
  readonly token?: string | undefined
  /** Logs in if set. Allowed only for depth `client`. */
  readonly login?: SignInOptions | undefined
  /** Default: `client`. */
  readonly depth?: Depth | undefined
  /** Issuer as it appears in the document, for depth `issuer`. */
  readonly issuer?: string | undefined
  /** Timeout for each request and connection. Default: 10 s. */
  readonly timeoutMs?: number | undefined
  readonly ca?: string | undefined
  readonly proxy?: ProxyEnvironment | undefined
  /** Provider id, used instead of detecting the provider by its issuer. */
  readonly provider?: string | undefined
  /** Replaces the system's resolver (for tests). */
  readonly lookup?: LookupAll | undefined
  /** Directories whose requirements are checked. Allowed only for depth `client`. */
  readonly directories?: readonly DirectoryName[] | undefined
  readonly onFinding?: ((finding: Finding) => void) | undefined
}

export interface Examination {
  readonly findings: readonly Finding[]
  /** The identity provider, if it is known. */
  readonly profile: Profile | undefined
}

const defaultTimeoutMs = 10_000

export async function examineRemote(options: ExamineOptions): Promise<Examination> {
  const {
    timeoutMs = defaultTimeoutMs,
    ca,
    proxy,
    lookup,
    provider,
    token: presetToken,
    login: signInOptions,
    onFinding,
    depth = 'client',
    directories = [],
  } = options
  const { target: url, clientId, redirectUri, register = false, watchMs = 0, origin } = options
  const secrets = [presetToken, signInOptions?.clientSecret, ...url.searchParams.values()].filter(
    (secret) => secret !== undefined,
  )
  const clean = makeClean(secrets)
  const peers = await makePeers({ target: url, timeoutMs, ca, proxy, lookup })
  const facts: RemoteFacts = {
    target: url,
    peers,
    clean,
    secrets,
    options: { clientId, redirectUri, register, watchMs, origin },
    ...(signInOptions && {
      signIn: { options: signInOptions, issued: { refresh: new Set(), access: new Set() } },
    }),
  }
  if (presetToken !== undefined) facts.token = presetToken
  if (provider !== undefined) facts.profile = profileNamed(provider)
  if (depth === 'issuer') {
    // Keep the original text, because issuers are compared byte for byte.
    facts.issuer = options.issuer ?? url.href
    facts.profile ??= profileOf(facts.issuer)
  }
  try {
    const listing = directoryChecks(directories)
    const checks = signInOptions ? [...loginChecks, ...listing, end] : [...checksOf[depth], ...listing]
    const findings = await walk(checks, {
      facts,
      clean,
      onFinding,
      signal: signInOptions?.signal,
      providerFix: (code) => fixOf(facts.profile, code),
    })
    return { findings, profile: facts.profile }
  } finally {
    await endSession(facts)
    await peers.close()
  }
}

function fixOf(profile: Profile | undefined, code: string) {
  // Both codes have the same fix for a given provider.
  const shown = code === 'refresh.not-issued' ? 'refresh.none' : code
  const text = profile?.fixes[shown as keyof typeof profile.fixes]
  return profile === undefined || text === undefined ? undefined : { text, docs: profile.docs }
}
