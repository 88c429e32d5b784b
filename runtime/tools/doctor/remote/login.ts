/**
 * Checks what the authorization server supports, from its metadata: flow, PKCE, registration, client authentication,
 * scopes, refresh, keys.
 * Source: MCP 2025-11-25 authorization; RFC 8414; RFC 7591; RFC 7636.
 */
import { isFields, jsonFields } from '../../../../schemas/index.ts'
import { networkFailureText } from '../../../net/index.ts'
import { isFailure } from '../../../toolkit/mcp-client/exchange.ts'
import { quantity } from '../../../toolkit/terminal/plain-text.ts'
import { deleteRegistration, OAuthClientError, registerClient, supportsS256 } from '../../../oauth/index.ts'
import { failed, ok, type CheckOutcome, skipped, warning } from '../report/finding.ts'
import { joinList, redirectUriOf, type RemoteFacts, strings, text } from './facts.ts'

const manyScopes = 20

export async function checkFlow({ server }: RemoteFacts): Promise<CheckOutcome> {
  const types = strings(server, 'response_types_supported')
  const grants = strings(server, 'grant_types_supported')
  if (types !== undefined && !types.includes('code')) {
    return failed('flow.no-code', `response_types_supported: ${joinList(types)}`)
  }
  if (grants !== undefined && !grants.includes('authorization_code')) {
    return failed('flow.no-code', `grant_types_supported: ${joinList(grants)}`)
  }
  return ok('authorization code')
}

export async function checkPkce({ server }: RemoteFacts): Promise<CheckOutcome> {
  const methods = strings(server, 'code_challenge_methods_supported')
  if (methods === undefined) return failed('pkce.absent', 'no code_challenge_methods_supported')
  if (supportsS256({ issuer: '', code_challenge_methods_supported: [...methods] })) return ok('S256')
  return failed('pkce.plain', `code_challenge_methods_supported: ${joinList(methods)}`)
}

export async function checkRegistration({ server, options, profile }: RemoteFacts): Promise<CheckOutcome> {
  const ways = [
    ...(text(server, 'registration_endpoint') === undefined ? [] : ['dynamic registration']),
    ...(server?.['client_id_metadata_document_supported'] === true ? ['metadata documents'] : []),
  ]
  if (ways.length > 0) return ok(ways.join(', '))
  if (options.clientId !== undefined) return ok('registered: --client-id is set')
  const name = profile === undefined ? '' : ` (${profile.title})`
  return failed('registration.none', `clients cannot register themselves${name}`)
}

/** Registers a client if --register is set, and deletes it if the server supports that (RFC 7592). */
export async function tryRegistration(facts: RemoteFacts): Promise<CheckOutcome> {
  const { server, options, peers } = facts
  const endpoint = text(server, 'registration_endpoint')
  if (!options.register) return skipped('requires --register, which registers a client and then deletes it')
  if (endpoint === undefined) return skipped('no registration_endpoint')
  try {
    const made = await registerClient(
      endpoint,
      {
        client_name: 'gatehouse doctor',
        redirect_uris: [redirectUriOf(facts)],
        grant_types: ['authorization_code', 'refresh_token'],
        response_types: ['code'],
        token_endpoint_auth_method: 'none',
        application_type: 'native',
      },
      { fetch: peers.fetch },
    )
    return ok(
      `registered${(await deleteRegistration(made, { fetch: peers.fetch })) ? ' and deleted' : ', but could not be deleted'}`,
    )
  } catch (error) {
    if (!(error instanceof OAuthClientError)) throw error
    return registrationFailure(error)
  }
}

export function registrationFailure({
  kind,
  error,
  description,
  responseStatus,
  message,
}: OAuthClientError): CheckOutcome {
  const seen = [message, description].filter((part) => part !== undefined).join(': ')
  if (kind === 'unreachable') return failed('registration.unreachable', seen)
  if (responseStatus === 401 || error === 'invalid_token') return failed('registration.token', seen)
  if (error === 'invalid_redirect_uri') return failed('registration.redirect', seen)
  return failed('registration.refused', seen)
}

const clientAuthMethods = new Set(['none', 'client_secret_basic', 'client_secret_post', 'private_key_jwt'])

export async function checkTokenAuth({ server }: RemoteFacts): Promise<CheckOutcome> {
  const methods = strings(server, 'token_endpoint_auth_methods_supported')
  // RFC 8414 section 2: the default is client_secret_basic.
  if (methods === undefined) return ok('not listed')
  const seen = `token_endpoint_auth_methods_supported: ${joinList(methods)}`
  if (!methods.some((method) => clientAuthMethods.has(method))) return failed('token-auth.unsupported', seen)
  return methods.includes('none') ? ok(joinList(methods)) : warning('token-auth.no-public', seen)
}

/**
 * Returns the scopes that a client requests: those in the challenge or, if there are none, all scopes in the document.
 */
export function wantedScopes({ challenge, resource }: RemoteFacts): readonly string[] {
  const challenged = challenge?.params.get('scope')
  if (challenged !== undefined) return challenged.split(' ').filter((scope) => scope !== '')
  return strings(resource, 'scopes_supported') ?? []
}

export async function checkScopes(facts: RemoteFacts): Promise<CheckOutcome> {
  const wanted = wantedScopes(facts)
  const known = strings(facts.server, 'scopes_supported')
  if (wanted.length === 0) return ok('none are requested')
  const unknown = known === undefined ? [] : wanted.filter((scope) => !known.includes(scope))
  if (unknown.length > 0) return warning('scopes.unknown', `not in scopes_supported: ${joinList(unknown)}`)
  if (wanted.length > manyScopes)
    return warning('scopes.many', `${wanted.length} scopes: ${joinList(wanted)}`)
  return ok(joinList(wanted))
}

export async function checkRefresh({ server }: RemoteFacts): Promise<CheckOutcome> {
  const grants = strings(server, 'grant_types_supported')
  // RFC 8414 section 2: the default is authorization_code and implicit, but many servers that omit the member support
  // refresh.
  if (grants === undefined) return ok('the metadata does not contain grant_types_supported')
  if (!grants.includes('refresh_token'))
    return warning('refresh.none', `grant_types_supported: ${joinList(grants)}`)
  const offline = strings(server, 'scopes_supported')?.includes('offline_access') ?? false
  return ok(offline ? 'refresh_token, with the offline_access scope' : 'refresh_token')
}

const privateMembers = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'k']

export async function checkKeys({ server, peers }: RemoteFacts): Promise<CheckOutcome> {
  const uri = text(server, 'jwks_uri')
  if (uri === undefined || !URL.canParse(uri)) return warning('keys.missing', 'no jwks_uri')
  const reply = await peers.ask(new URL(uri), { method: 'GET', headers: { accept: 'application/json' } })
  if (isFailure(reply)) return failed('keys.unreachable', networkFailureText(reply))
  const keys = reply.status === 200 ? jsonFields(reply.body)?.['keys'] : undefined
  if (!Array.isArray(keys)) return failed('keys.unreachable', `status ${reply.status}, no key set`)
  const objects = keys.filter(isFields)
  if (objects.length === 0) return failed('keys.empty', 'the key set is empty')
  if (objects.some((key) => privateMembers.some((name) => name in key))) {
    return failed('keys.private', 'the key set contains a private key')
  }
  return ok(quantity(objects.length, 'key'))
}
