/**
 * The first step of a login: opens the redirect URI and obtains a client. The client is either the given client, or a
 * client that is registered for this login and deleted afterwards.
 */
import { silentLog } from '../../../net/index.ts'
import {
  type Callback,
  checkServerMetadata,
  hintFor,
  nativeClient,
  type OAuthClient,
  OAuthClientError,
  openCallback,
  registerClient,
  registeredClient,
  type Registration,
  type ServerMetadata,
  supportsS256,
  unavailablePort,
  withOffline,
} from '../../../oauth/index.ts'
import { redirectUriOf, type RemoteFacts, resourceOf, text } from '../remote/facts.ts'
import { registrationFailure, wantedScopes } from '../remote/login.ts'
import { failed, ok, type CheckOutcome, skipped } from '../report/finding.ts'
import type { SignIn } from './state.ts'

export async function checkLoginClient(facts: RemoteFacts): Promise<CheckOutcome> {
  const { signIn, options, profile } = facts
  if (signIn === undefined) return skipped('needs --login')
  const server = metadataOf(facts)
  if (server instanceof OAuthClientError) return failed('endpoints.insecure', server.message)
  if (!supportsS256(server) && !isSilent(server, profile?.id))
    return skipped('MCP clients require PKCE (S256)')
  if (options.clientId === undefined && server.registration_endpoint === undefined)
    return unknown('login.no-client', 'clients can register only through metadata documents')
  const opened = await openPort(facts)
  if (typeof opened === 'string') return unknown('login.port', opened)
  const { callback, redirectUri } = opened
  const scopes = withOffline(wantedScopes(facts), server)
  try {
    const made = await clientFor(facts, signIn, server, redirectUri, scopes)
    signIn.ready = { ...opened, ...made, server, scopes, resource: resourceOf(facts) }
    return ok(`${made.registration ? 'registered' : 'given'}, with ${redirectUri}`)
  } catch (error) {
    await callback.close()
    if (!(error instanceof OAuthClientError)) throw error
    return registrationFailure(error)
  }
}

function unknown(code: 'login.no-client' | 'login.port', observed: string): CheckOutcome {
  return { result: 'unknown', code, observed }
}

function metadataOf({ server, target }: RemoteFacts): ServerMetadata | OAuthClientError {
  try {
    return checkServerMetadata(server ?? {}, text(server, 'issuer') ?? '', target.protocol === 'http:')
  } catch (error) {
    if (error instanceof OAuthClientError) return error
    throw error
  }
}

/**
 * True for providers that support S256 without advertising it. The metadata check has already reported that clients
 * reject such providers.
 */
function isSilent(server: ServerMetadata, provider: string | undefined): boolean {
  return server.code_challenge_methods_supported === undefined && hintFor(provider)?.silentPkce === true
}

/**
 * Returns the reason when no port is available. Without --redirect-uri, a client that this program registers can use
 * any port.
 */
async function openPort(
  facts: RemoteFacts,
): Promise<{ readonly callback: Callback; readonly redirectUri: string } | string> {
  const { options } = facts
  const wanted = redirectUriOf(facts)
  const { hostname: host, port: named, pathname: path } = new URL(wanted)
  const port = named === '' ? 80 : Number(named)
  const mayMove = options.redirectUri === undefined && options.clientId === undefined
  let reason = ''
  for (const candidate of mayMove && port !== 0 ? [port, 0] : [port]) {
    try {
      const callback = await openCallback(candidate, silentLog, { host, path })
      // Keeps the redirect URI unchanged, because servers compare it byte for byte.
      return { callback, redirectUri: candidate === 0 ? callback.redirectUri : wanted }
    } catch (error) {
      reason = unavailablePort(error, candidate)
    }
  }
  return reason
}

async function clientFor(
  { options, peers, secrets }: RemoteFacts,
  signIn: SignIn,
  server: ServerMetadata,
  redirectUri: string,
  scopes: readonly string[],
): Promise<{ readonly client: OAuthClient; readonly registration?: Registration }> {
  const { clientSecret, signal } = signIn.options
  const { clientId } = options
  if (clientId !== undefined) return { client: { clientId, clientSecret } }
  const metadata = nativeClient('gatehouse doctor', server, redirectUri, scopes)
  const registration = await registerClient(server.registration_endpoint ?? '', metadata, {
    fetch: peers.fetch,
    signal,
  })
  for (const secret of [registration.clientSecret, registration.registrationAccessToken])
    if (secret !== undefined) secrets.push(secret)
  return { client: registeredClient(registration), registration }
}
