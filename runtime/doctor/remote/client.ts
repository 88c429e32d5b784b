/**
 * A client that was registered by hand: does the authorization server know it, its redirect URI, the scopes and the
 * resource? Asks the authorization endpoint as a browser would, without signing in, and the token endpoint with a code
 * that cannot exist. Source: RFC 6749 sections 4.1.2.1 and 5.2; RFC 8707 section 2.
 */
import { authorizationUrl, canonicalResource, makeLoginSecrets } from '../../oauth/index.ts'
import { header, isFailure, type ProbeReply } from '../probe/exchange.ts'
import { failureText } from '../probe/failure.ts'
import { jsonObject } from '../probe/mcp.ts'
import type { FindingCode } from '../report/codes.ts'
import { failed, ok, type CheckOutcome, skipped } from '../report/finding.ts'
import { type RemoteFacts, shownUrl, text } from './facts.ts'
import { wantedScopes } from './login.ts'

const byError: Readonly<Record<string, FindingCode>> = {
  invalid_scope: 'client.scope',
  invalid_target: 'client.target',
  invalid_client: 'client.unknown',
  unauthorized_client: 'client.unknown',
}

/** These come after the checks that matter here. */
const harmless = new Set(['login_required', 'interaction_required', 'consent_required', 'access_denied'])

export async function checkClient(facts: RemoteFacts): Promise<CheckOutcome> {
  const { options, server, peers } = facts
  const endpoint = text(server, 'authorization_endpoint')
  if (options.clientId === undefined) return skipped('needs --client-id')
  if (endpoint === undefined) return skipped('no authorization_endpoint')
  const { state, codeChallenge } = makeLoginSecrets()
  const url = authorizationUrl({
    endpoint,
    clientId: options.clientId,
    redirectUri: options.redirectUri,
    scopes: wantedScopes(facts),
    state,
    codeChallenge,
    resource: resourceOf(facts),
  })
  const reply = await peers.ask(url, { method: 'GET', headers: { accept: 'text/html' } })
  if (isFailure(reply)) return failed('client.unreachable', failureText(reply))
  return ofAuthorization(facts, reply) ?? (await askToken(facts))
}

function resourceOf({ resource, target }: RemoteFacts): string {
  return text(resource, 'resource') ?? canonicalResource(shownUrl(target))
}

/** Undefined when the server went on to a login. */
function ofAuthorization(facts: RemoteFacts, reply: ProbeReply): CheckOutcome | undefined {
  const { options, profile } = facts
  const location = header(reply, 'location') ?? ''
  const known = profile?.errors?.find(
    ({ match }) => match.test(reply.body.slice(0, 65_536)) || match.test(location),
  )
  if (known !== undefined) return failed(known.code, known.cause, { fix: known.fix })
  if (reply.status >= 500) return failed('client.unreachable', `status ${reply.status}`)
  if (location.startsWith(options.redirectUri)) {
    const params = new URL(location).searchParams
    const error = params.get('error') ?? 'no error'
    if (harmless.has(error)) return undefined
    return failed(byError[error] ?? 'client.refused', `${error}: ${params.get('error_description') ?? ''}`)
  }
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

function errorIn(reply: ProbeReply): string | undefined {
  const body = jsonObject(reply.body)
  return text(body, 'error_description') ?? text(body, 'error')
}

/** A code that cannot exist is refused as a grant; a client that does not exist is refused before that. */
async function askToken(facts: RemoteFacts): Promise<CheckOutcome> {
  const { options, server, peers } = facts
  const endpoint = text(server, 'token_endpoint')
  if (endpoint === undefined || options.clientId === undefined) return ok('the login page is shown')
  const body = new URLSearchParams({
    grant_type: 'authorization_code',
    code: 'gatehouse-doctor',
    client_id: options.clientId,
    redirect_uri: options.redirectUri,
    code_verifier: makeLoginSecrets().codeVerifier,
    resource: resourceOf(facts),
  })
  const reply = await peers.ask(new URL(endpoint), {
    method: 'POST',
    headers: { accept: 'application/json', 'content-type': 'application/x-www-form-urlencoded' },
    body: body.toString(),
  })
  if (isFailure(reply)) return failed('client.unreachable', failureText(reply))
  const error = text(jsonObject(reply.body), 'error')
  if (error === 'invalid_target') return failed('client.target', `${error} at the token endpoint`)
  // A confidential client has a secret that was not given here.
  if (error === 'invalid_client')
    return ok('known at the authorization endpoint; it needs a secret for tokens')
  return ok('known, with this redirect URI')
}
