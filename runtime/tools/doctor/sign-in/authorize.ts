/**
 * The user's part of a login: the browser opens the authorization endpoint and returns with a code.
 * Source: RFC 6749 section 4.1, RFC 9207, RFC 8252.
 */
import { own } from '../../../../schemas/index.ts'
import {
  authorizationUrl,
  makeLoginSecrets,
  OAuthClientError,
  readAuthorizationCode,
} from '../../../oauth/index.ts'
import type { RemoteFacts } from '../remote/facts.ts'
import type { FindingCode } from '../report/codes.ts'
import { failed, ok, type CheckOutcome, skipped } from '../report/finding.ts'
import { knownError, speaksOfPkce } from './errors.ts'
import type { ReadyClient, SignInOptions } from './state.ts'

/** Browsers and servers truncate longer URLs. */
const maxUrlLength = 16_384

export async function checkBrowser(facts: RemoteFacts): Promise<CheckOutcome> {
  const { signIn, secrets } = facts
  if (signIn?.ready === undefined) return skipped('needs a client')
  const { options, ready } = signIn
  const login = makeLoginSecrets()
  signIn.secrets = login
  secrets.push(login.state, login.codeVerifier)
  const url = authorizationUrl({
    endpoint: ready.server.authorization_endpoint ?? '',
    clientId: ready.client.clientId,
    redirectUri: ready.redirectUri,
    scopes: ready.scopes,
    state: login.state,
    codeChallenge: login.codeChallenge,
    nonce: ready.scopes.includes('openid') ? login.nonce : undefined,
    resource: ready.resource,
  }).href
  if (url.length > maxUrlLength) {
    return failed('client.refused', `the login address is ${url.length} characters long`)
  }
  await show(url, options)
  return waitFor(facts, ready, options)
}

async function show(url: string, { notify, open }: SignInOptions): Promise<void> {
  if (open === undefined) return notify(`Open this address in a browser on this machine: ${url}`)
  notify(`Opening a browser: ${url}`)
  if (!(await open(url))) notify('Cannot start a browser: open the address above on this machine.')
}

async function waitFor(
  facts: RemoteFacts,
  { callback, server }: ReadyClient,
  { timeoutMs, signal, notify }: SignInOptions,
): Promise<CheckOutcome> {
  const { signIn, secrets } = facts
  const limit = AbortSignal.timeout(timeoutMs)
  notify(`Waiting up to ${timeoutMs / 1000} s for the browser to return`)
  const redirect = await callback
    .wait(signIn?.secrets?.state ?? '', AbortSignal.any([limit, signal]))
    .catch(() => undefined)
  if (signIn === undefined || redirect === undefined) {
    const observed = signal.aborted ? 'interrupted' : `no redirect within ${timeoutMs / 1000} s`
    return { result: 'unknown', code: signal.aborted ? 'doctor.interrupted' : 'login.timeout', observed }
  }
  signIn.redirect = redirect
  const code = redirect.params.get('code')
  if (code !== null) secrets.push(code)
  try {
    signIn.code = readAuthorizationCode(redirect.params, server)
    return ok('the browser returned with a code')
  } catch (error) {
    redirect.finish({ ok: false })
    if (!(error instanceof OAuthClientError)) throw error
    return refusal(error, redirect.params, facts)
  }
}

const byError: Readonly<Record<string, FindingCode>> = {
  access_denied: 'login.denied',
  invalid_scope: 'client.scope',
  invalid_target: 'client.target',
  invalid_client: 'client.unknown',
  unauthorized_client: 'client.unknown',
  unsupported_response_type: 'flow.no-code',
  server_error: 'login.server',
  temporarily_unavailable: 'login.server',
}

function refusal(error: OAuthClientError, params: URLSearchParams, facts: RemoteFacts): CheckOutcome {
  if (error.kind === 'protocol') {
    const iss = params.get('iss')
    const issuer = facts.signIn?.ready?.server.issuer
    if (params.getAll('iss').length > 1 || iss === issuer) return failed('login.response', error.message)
    if (iss !== null)
      return failed('login.issuer', `${error.message}: iss is ${iss}, but the issuer is ${issuer ?? ''}`)
    const isPromised = facts.server?.['authorization_response_iss_parameter_supported'] === true
    return failed(isPromised ? 'login.issuer' : 'login.response', error.message)
  }
  const seen = [error.error ?? 'an error', error.description].filter((part) => part !== undefined).join(': ')
  const known = knownError(facts, error.description)
  if (known !== undefined) return known
  if (speaksOfPkce(error.description)) return failed('login.pkce', seen)
  return failed(own(byError, error.error ?? '') ?? 'client.refused', seen)
}
