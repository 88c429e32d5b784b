/**
 * Finds the target's authorization server, and determines the resource and the scopes to request.
 *
 * Configured endpoints or a configured issuer are used unchanged. Otherwise, the order is: the target's
 * protected-resource document (from the challenge or the well-known locations), the challenge's realm, metadata at the
 * target's own origin, and the oldest specification's default endpoints. The search fails when a document describes
 * another resource, or when the server's metadata does not advertise PKCE with S256, even for a configured issuer. A
 * login without a user requires no PKCE. The default endpoints are not used for a login without a user, because the
 * client secret would be sent to a guessed URL.
 * Source: docs/reference/specification/proxy-command.md#rules, rules 1, 2 and 5; MCP 2025-11-25 authorization; MCP
 * 2025-03-26 (fallbacks); RFC 9449 section 5.1; RFC 9728 section 2.
 */
import type { OAuthSettings } from '../../config/index.ts'
import { isLoopbackHost } from '../../net/index.ts'
import {
  canonicalResource,
  type Challenge,
  conventionalServer,
  discoverResource,
  discoverServer,
  type Fetch,
  hintedScopes,
  hintFor,
  OAuthClientError,
  proofAlgorithm,
  type ProofUse,
  type ResourceMetadata,
  type ServerMetadata,
  supportsS256,
  typedServer,
  withOffline,
} from '../../oauth/index.ts'

export interface Located {
  readonly server: ServerMetadata
  /** Undefined when endpoints were configured, because there is no issuer to compare with. */
  readonly issuer: string | undefined
  /** The RFC 8707 resource indicator to send. */
  readonly resource: string | undefined
  readonly scopes: readonly string[]
  /** Provider-specific parameters for the authorization request, or for the token request of a login without a user. */
  readonly authorizeParams?: Readonly<Record<string, string>>
  /** Determines when a token that is bound to a key is requested. Undefined: never. */
  readonly dpop?: ProofUse | undefined
}

export type LocateSettings = Pick<
  OAuthSettings,
  'issuer' | 'authorizeUrl' | 'tokenUrl' | 'resource' | 'scopes' | 'provider' | 'machineGrant' | 'dpop'
>

export interface LocateOptions {
  readonly settings: LocateSettings
  /** The configured target, without its query. */
  readonly targetUri: string
  /** The URL that the target rejected. */
  readonly url: string
  readonly challenge: Challenge | undefined
  readonly fetch: Fetch
  readonly signal: AbortSignal
  /** Called for each URL whose response is not a usable protected-resource document. */
  readonly onSkipped?: ((url: string, reason: string) => void) | undefined
}

/** When these flags are set, the metadata of the authorization server is not read. */
const endpointFlags = '--remote-auth-authorize-url and --remote-auth-token-url'

/** Scopes for the user's identity. Requested by default if an issuer is configured. */
const userScopes = ['openid', 'profile', 'email']
/** Servers reject these scopes without a user, but many resources list them. */
const scopesOfUsers: ReadonlySet<string> = new Set([...userScopes, 'offline_access'])

/** Rejects with OAuthClientError. */
export async function locate(options: LocateOptions): Promise<Located> {
  return withHint(await locateServer(options), options.settings)
}

/** Adds provider-specific values; configured settings take precedence. */
function withHint(located: Located, { provider, scopes, resource, machineGrant }: LocateSettings): Located {
  const hint = hintFor(provider)
  if (!hint) return located
  const audience = hint.resource === 'audience' ? located.resource : undefined
  return {
    ...located,
    resource: hint.resource !== undefined && resource === undefined ? undefined : located.resource,
    scopes: scopes === undefined && !machineGrant ? offlineScopes(hint, located.scopes) : located.scopes,
    authorizeParams: { ...hint.authorizeParams, ...(audience !== undefined && { audience }) },
  }
}

/** Requests the scope for a refresh token even when the target lists no scopes. */
function offlineScopes(hint: ReturnType<typeof hintFor>, scopes: readonly string[]): readonly string[] {
  const own = hint?.offlineScope
  return scopes.length === 0 && own !== undefined && own !== 'none' ? [own] : hintedScopes(hint, scopes)
}

async function locateServer(options: LocateOptions): Promise<Located> {
  const { settings } = options
  if (settings.tokenUrl !== undefined) {
    return {
      server: typedServer(settings.authorizeUrl, settings.tokenUrl),
      issuer: undefined,
      resource: resourceFor(options, undefined),
      scopes: settings.scopes ?? [],
      dpop: proofUse(options, undefined, undefined),
    }
  }
  if (settings.issuer !== undefined) {
    const server = await firstUsable([settings.issuer], options)
    requirePkce(server, settings)
    return {
      server,
      issuer: server.issuer,
      resource: resourceFor(options, undefined),
      scopes: settings.scopes ?? (settings.machineGrant ? [] : userScopes),
      dpop: proofUse(options, undefined, server),
    }
  }
  return locateFromTarget(options)
}

async function locateFromTarget(options: LocateOptions): Promise<Located> {
  const { settings, url, challenge, fetch, signal } = options
  const document = await discoverResource(url, {
    fetch,
    signal,
    metadataUrl: challenge?.params.get('resource_metadata'),
    onSkipped: options.onSkipped,
  })
  const server = await serverFor(document, options)
  requirePkce(server, settings)
  const asked = challenge?.params.has('scope') ? scopesOf(challenge) : document?.scopesSupported
  return {
    server,
    issuer: server.issuer,
    resource: resourceFor(options, document),
    scopes: settings.scopes ?? requestedScopes(asked ?? [], server, settings),
    dpop: proofUse(options, document, server),
  }
}

/**
 * Determines when to request a bound token. In `auto` mode, the target must announce that it accepts bound tokens:
 * many authorization servers bind a token to any proof, and a target without DPoP would reject the token. Throws
 * OAuthClientError `protocol` if a bound token is required but not possible.
 */
function proofUse(
  { settings, challenge }: LocateOptions,
  document: ResourceMetadata | undefined,
  server: ServerMetadata | undefined,
): ProofUse | undefined {
  const { dpop: mode } = settings
  if (mode === 'off') return undefined
  const atServer = listsOurs(server?.dpop_signing_alg_values_supported)
  const atTarget = challenge?.proof ?? proofsIn(document)
  const isRequired = mode === 'required' || atTarget === 'required'
  if (atTarget === 'unsupported' || (isRequired && atServer === false)) {
    throw new OAuthClientError(
      'protocol',
      `${atServer === false ? 'the authorization server' : 'the target'} does not accept DPoP proofs with ${proofAlgorithm}`,
    )
  }
  if (isRequired) return 'required'
  if (atServer === false) return undefined
  return atServer && atTarget === 'accepted' ? 'offered' : 'demanded'
}

/** Returns the support for bound tokens that the protected-resource document advertises. Source: RFC 9728 section 2. */
function proofsIn({ document }: Partial<ResourceMetadata> = {}): Challenge['proof'] {
  const isAccepted = listsOurs(document?.['dpop_signing_alg_values_supported'])
  if (document?.['dpop_bound_access_tokens_required'] === true)
    return isAccepted === false ? 'unsupported' : 'required'
  return isAccepted ? 'accepted' : undefined
}

/** Returns undefined for a value that is not a list. */
function listsOurs(algorithms: unknown): boolean | undefined {
  return Array.isArray(algorithms) ? algorithms.includes(proofAlgorithm) : undefined
}

function requestedScopes(
  asked: readonly string[],
  server: ServerMetadata,
  { machineGrant }: LocateSettings,
): readonly string[] {
  return machineGrant ? asked.filter((scope) => !scopesOfUsers.has(scope)) : withOffline(asked, server)
}

/** Returns the scopes that a challenge requires. */
export function scopesOf(challenge: Challenge | undefined): readonly string[] {
  const text = challenge?.params.get('scope') ?? ''
  return text.split(' ').filter((scope) => scope !== '')
}

async function serverFor(
  document: ResourceMetadata | undefined,
  options: LocateOptions,
): Promise<ServerMetadata> {
  const { fetch, signal, url, challenge } = options
  const named = document?.authorizationServers ?? []
  if (named.length > 0) return firstUsable(named, options)
  const realm = challenge?.params.get('realm')
  if (realm !== undefined && isIssuerLike(realm)) {
    const found = await discoverServer(realm, { fetch, signal, need: 'registration_endpoint' }).catch(
      absentOnly,
    )
    if (found) return found
  }
  const { origin } = new URL(url)
  const found = await discoverServer(origin, { fetch, signal, need: 'registration_endpoint' }).catch(
    absentOnly,
  )
  if (found) return found
  if (options.settings.machineGrant) {
    throw new OAuthClientError(
      'absent',
      'neither the server nor its challenge names an authorization server. Configure the issuer',
    )
  }
  return conventionalServer(origin)
}

/** Returns the first server in the document that has metadata. Throws the last error when no server has metadata. */
async function firstUsable(issuers: readonly string[], options: LocateOptions): Promise<ServerMetadata> {
  let failure: unknown
  for (const issuer of issuers) {
    try {
      return await discoverIssuer(issuer, options)
    } catch (error) {
      if (!(error instanceof OAuthClientError)) throw error
      failure = error
    }
  }
  if (failure instanceof OAuthClientError && failure.kind === 'absent')
    throw new OAuthClientError(
      'absent',
      options.settings.machineGrant
        ? 'the authorization server has no metadata document. Configure its token endpoint'
        : `the authorization server has no metadata document. Set its endpoints with ${endpointFlags}, and the client ` +
            'with --remote-auth-client-id',
      { cause: failure },
    )
  throw failure
}

/**
 * Discovers an issuer's server. If the issuer has no path, tries both forms: with and without the slash after the host.
 * Both forms identify the same URL, and resources often use a different form than the server's metadata. All later
 * comparisons use the issuer from the metadata.
 */
async function discoverIssuer(issuer: string, { fetch, signal }: LocateOptions): Promise<ServerMetadata> {
  const discovery = { fetch, signal, need: 'registration_endpoint' } as const
  try {
    return await discoverServer(issuer, discovery)
  } catch (error) {
    const isMismatch = error instanceof OAuthClientError && error.kind === 'protocol'
    if (!isMismatch || !URL.canParse(issuer)) throw error
    const { origin, href } = new URL(issuer)
    if (href !== `${origin}/`) throw error
    const otherForm = issuer === origin ? href : origin
    return discoverServer(otherForm, discovery).catch(() => Promise.reject(error))
  }
}

/** Ignores a missing document but rethrows errors from an invalid one. */
function absentOnly(error: unknown): undefined {
  if (error instanceof OAuthClientError && (error.kind === 'absent' || error.kind === 'refused'))
    return undefined
  throw error
}

function isIssuerLike(realm: string): boolean {
  if (!URL.canParse(realm)) return false
  const { protocol, hostname, search, hash } = new URL(realm)
  return (
    search === '' &&
    hash === '' &&
    (protocol === 'https:' || (protocol === 'http:' && isLoopbackHost(hostname)))
  )
}

/** MCP 2025-11-25 authorization: a client that does not find S256 in the metadata must not continue. */
function requirePkce(server: ServerMetadata, { provider, machineGrant }: LocateSettings): void {
  if (machineGrant || supportsS256(server)) return
  const listed = server.code_challenge_methods_supported
  if (listed === undefined && hintFor(provider)?.silentPkce) return
  const found =
    listed === undefined
      ? 'its metadata has no code_challenge_methods_supported'
      : `code_challenge_methods_supported lists ${shownMethods(listed)}`
  throw new OAuthClientError(
    'protocol',
    `the authorization server does not advertise PKCE with S256 (${found}). If it does support S256, ` +
      `set its endpoints with ${endpointFlags}`,
  )
}

function shownMethods(methods: readonly string[]): string {
  const legal = methods.filter((method) => /^[\w.~-]{1,32}$/.test(method)).slice(0, 5)
  return legal.length === 0 ? 'nothing usable' : legal.join(', ')
}

function resourceFor(options: LocateOptions, document: ResourceMetadata | undefined): string | undefined {
  const { settings, targetUri } = options
  if (settings.resource === '') return undefined
  if (settings.resource !== undefined) return settings.resource
  return document?.resource ?? canonicalResource(targetUri)
}
