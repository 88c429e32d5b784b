/**
 * Checks a registered client: its id, redirect URI, scopes and resource. Calls the authorization endpoint as a browser
 * does, but without a login, and calls the token endpoint with a code that cannot exist.
 * Source: RFC 6749 sections 4.1.2.1 and 5.2; RFC 8707 section 2.
 */
import { jsonFields, own } from '../../../../schemas/index.ts'
import { authorizationUrl, makeLoginSecrets } from '../../../oauth/index.ts'
import { header, isFailure, type ProbeReply } from '../../../toolkit/mcp-client/exchange.ts'
import { networkFailureText } from '../../../net/index.ts'
import type { FindingCode } from '../report/codes.ts'
import { failed, ok, type CheckOutcome, skipped } from '../report/finding.ts'
import { speaksOfPkce } from '../sign-in/errors.ts'
import { clientIdOf, redirectUriOf, type RemoteFacts, resourceOf, text } from './facts.ts'
import { wantedScopes } from './login.ts'

const byError: Readonly<Record<string, FindingCode>> = {
  invalid_scope: 'client.scope',
  invalid_target: 'client.target',
  invalid_client: 'client.unknown',
  unauthorized_client: 'client.unknown',
}

/** Errors that the server returns only after all relevant checks have passed. */
const harmless = new Set(['login_required', 'interaction_required', 'consent_required', 'access_denied'])

export async function checkClient(facts: RemoteFacts): Promise<CheckOutcome> {
  const { server, peers, signIn } = facts
  const endpoint = text(server, 'authorization_endpoint')
  const clientId = clientIdOf(facts)
  if (clientId === undefined) return skipped('needs --client-id')
  if (endpoint === undefined) return skipped('no authorization_endpoint')
  const { state, codeChallenge } = makeLoginSecrets()
  const url = authorizationUrl({
    endpoint,
    clientId,
    redirectUri: redirectUriOf(facts),
    scopes: signIn?.ready?.scopes ?? wantedScopes(facts),
    state,
    codeChallenge,
    resource: resourceOf(facts),
  })
  const reply = await peers.ask(url, { method: 'GET', headers: { accept: 'text/html' } })
  if (isFailure(reply)) return failed('client.unreachable', networkFailureText(reply))
  return authorizationFailure(facts, reply) ?? (await askToken(facts))
}

/** Returns undefined when the server accepted the request. */
function authorizationFailure(facts: RemoteFacts, reply: ProbeReply): CheckOutcome | undefined {
  const { profile } = facts
  const redirectUri = redirectUriOf(facts)
  const location = header(reply, 'location') ?? ''
  const known = profile?.errors?.find(
    ({ match }) => match.test(reply.body.slice(0, 65_536)) || match.test(location),
  )
  if (known !== undefined) return failed(known.code, known.cause, { fix: known.fix })
  if (reply.status >= 500) return failed('client.unreachable', `status ${reply.status}`)
  if (location.startsWith(redirectUri)) {
    const params = new URL(location).searchParams
    const error = params.get('error') ?? 'no error'
    // A server without a login page returns a code immediately.
    if (harmless.has(error) || params.has('code')) return undefined
    const description = params.get('error_description') ?? ''
    const code = speaksOfPkce(description) ? 'login.pkce' : (own(byError, error) ?? 'client.refused')
    return failed(code, `${error}: ${description}`)
  }
  if (location !== '' && !isWebAddress(location, facts))
    return failed('client.refused', `status ${reply.status} to an address that is not http or https`)
  if (reply.status < 400) return undefined
  const seen = `status ${reply.status} ${errorIn(reply) ?? ''}`.trim()
  const named = /\b(invalid_target|invalid_scope)\b/.exec(reply.body)?.[1]
  if (named !== undefined) return failed(byError[named] ?? 'client.refused', `${seen} ${named}`)
  if (/redirect[ _-]?ur[il]/i.test(reply.body)) return failed('client.redirect', seen)
  if (/invalid_client|client.{0,40}(?:not found|unknown|invalid|unrecognized)/i.test(reply.body)) {
    return failed('client.unknown', seen)
  }
  return failed('client.refused', seen)
}

function isWebAddress(location: string, { server }: RemoteFacts): boolean {
  const base = text(server, 'authorization_endpoint')
  return URL.canParse(location, base) && /^https?:$/.test(new URL(location, base).protocol)
}

function errorIn(reply: ProbeReply): string | undefined {
  const body = jsonFields(reply.body)
  return text(body, 'error_description') ?? text(body, 'error')
}

/** The server rejects an unknown client before it rejects the code. */
async function askToken(facts: RemoteFacts): Promise<CheckOutcome> {
  const { server, peers } = facts
  const endpoint = text(server, 'token_endpoint')
  const clientId = clientIdOf(facts)
  if (endpoint === undefined || clientId === undefined) return ok('the login page appears')
  const body = new URLSearchParams({
    grant_type: 'authorization_code',
    code: 'gatehouse-doctor',
    client_id: clientId,
    redirect_uri: redirectUriOf(facts),
    code_verifier: makeLoginSecrets().codeVerifier,
    resource: resourceOf(facts),
  })
  const reply = await peers.ask(new URL(endpoint), {
    method: 'POST',
    headers: { accept: 'application/json', 'content-type': 'application/x-www-form-urlencoded' },
    body: body.toString(),
  })
  if (isFailure(reply)) return failed('client.unreachable', networkFailureText(reply))
  const error = text(jsonFields(reply.body), 'error')
  if (error === 'invalid_target') return failed('client.target', `${error} at the token endpoint`)
  // A confidential client has a secret, which this check does not send.
  if (error === 'invalid_client') return ok('the client is registered; the token endpoint requires a secret')
  return ok('the client is registered with this redirect URI')
}
