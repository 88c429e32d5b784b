/**
 * Exchanges the code, then checks the access token, the granted scopes and the renewal of tokens. remote/token.ts
 * checks the token's contents.
 * Source: RFC 6749 sections 4.1.3, 5 and 6.
 */
import {
  codeGrant,
  OAuthClientError,
  refreshGrant,
  tokenRefusal,
  type TokenSet,
} from '../../../oauth/index.ts'
import { joinList, type RemoteFacts, text } from '../remote/facts.ts'
import { audiencesOf, claimsOf } from '../remote/token.ts'
import { verdictOn } from '../remote/verdict.ts'
import { failed, ok, type CheckOutcome, skipped, warning } from '../report/finding.ts'
import { codeFailure, knownError, errorText } from './errors.ts'

export async function checkCode(facts: RemoteFacts): Promise<CheckOutcome> {
  const { signIn, peers } = facts
  const { ready, secrets, code, options } = signIn ?? {}
  if (!ready || !secrets || code === undefined) return skipped('needs a code')
  const { server, client, redirectUri, resource } = ready
  let isDone = false
  try {
    const tokens = await codeGrant({
      server,
      client,
      redirectUri,
      resource,
      code,
      codeVerifier: secrets.codeVerifier,
      fetch: peers.fetch,
      signal: options?.signal,
    })
    if (!adopt(facts, tokens)) {
      return failed('code.response', 'access_token has characters that are invalid in a header')
    }
    isDone = true
    return ok(tokens.refreshToken === undefined ? 'an access token' : 'an access token and a refresh token')
  } catch (error) {
    if (!(error instanceof OAuthClientError)) throw error
    return codeFailure(error, facts)
  } finally {
    signIn?.redirect?.finish({ ok: isDone })
  }
}

/** Stores the tokens. Returns false when the access token cannot be sent in a header. */
function adopt(facts: RemoteFacts, tokens: TokenSet): boolean {
  const { accessToken, refreshToken, idToken } = tokens
  for (const secret of [accessToken, refreshToken, idToken])
    if (secret !== undefined) facts.secrets.push(secret)
  const { signIn } = facts
  if (signIn) {
    signIn.tokens = tokens
    signIn.issued.access.add(accessToken)
    if (refreshToken !== undefined) signIn.issued.refresh.add(refreshToken)
  }
  if (!/^[\x21-\x7e]+$/.test(accessToken)) return false
  facts.token = accessToken
  return true
}

/** OpenID Connect scopes, which are intended for the provider. MCP servers receive only the remaining scopes. */
const openIdScopes = new Set(['openid', 'profile', 'email', 'address', 'phone', 'offline_access'])

export async function checkGranted(facts: RemoteFacts): Promise<CheckOutcome> {
  const { signIn, challenge, token = '' } = facts
  const { ready, tokens } = signIn ?? {}
  if (!ready || !tokens) return skipped('needs a token')
  const granted = grantedScopes(tokens, token)
  // RFC 6749 section 5.1: if the granted scopes are omitted, they equal the requested scopes.
  if (granted === undefined) return ok('as requested: the response does not list scopes')
  const missing = ready.scopes.filter((scope) => !openIdScopes.has(scope) && !granted.includes(scope))
  if (missing.length === 0) return ok(joinList(granted))
  const seen = `not granted: ${joinList(missing)}`
  const isDemanded = challenge?.params.get('scope') !== undefined
  if (isDemanded || (await verdictOn(facts)) === 'scope') return failed('scopes.not-granted', seen)
  return warning('scopes.not-granted', seen)
}

function grantedScopes({ scope }: TokenSet, token: string): readonly string[] | undefined {
  const claims = claimsOf(token)
  const scp = claims?.['scp']
  const list = scope ?? text(claims, 'scope') ?? (Array.isArray(scp) ? scp.join(' ') : text(claims, 'scp'))
  return list?.split(/[ ,]/).filter((part) => part !== '')
}

export async function checkRenewal(facts: RemoteFacts): Promise<CheckOutcome> {
  const { signIn, peers, token = '' } = facts
  const { ready, tokens, options } = signIn ?? {}
  if (!ready || !tokens) return skipped('needs a token')
  if (tokens.refreshToken === undefined) return notIssued(tokens, token)
  const { server, client, resource } = ready
  const { refreshToken } = tokens
  try {
    const renewed = await refreshGrant({
      server,
      client,
      resource,
      refreshToken,
      fetch: peers.fetch,
      signal: options?.signal,
    })
    if (!adopt(facts, renewed)) return failed('code.response', 'the renewed access_token cannot be sent')
    const lost = lostAudiences(token, renewed.accessToken)
    if (lost.length > 0) return failed('refresh.audience', `no longer in aud: ${joinList(lost)}`)
    const isSame = renewed.refreshToken === refreshToken
    return ok(`renewed; the refresh token ${isSame ? 'stays the same' : 'changes with each use'}`)
  } catch (error) {
    if (!(error instanceof OAuthClientError)) throw error
    if (tokenRefusal(error) === 'temporary') return failed('code.unreachable', errorText(error))
    if (error.kind === 'protocol') return failed('code.response', errorText(error))
    return knownError(facts, error.description) ?? failed('refresh.refused', errorText(error))
  }
}

function notIssued({ expiresAt }: TokenSet, token: string): CheckOutcome {
  const exp = claimsOf(token)?.['exp']
  const end = expiresAt ?? (typeof exp === 'number' ? exp * 1000 : undefined)
  if (end === undefined) return ok('no refresh token, and the lifetime of the access token is unknown')
  const seconds = Math.max(0, Math.round((end - Date.now()) / 1000))
  return warning('refresh.not-issued', `none; the access token expires in ${seconds} s`)
}

function lostAudiences(before: string, after: string): readonly string[] {
  const old = claimsOf(before)
  const now = claimsOf(after)
  if (old === undefined || now === undefined) return []
  const remaining = audiencesOf(now)
  return audiencesOf(old).filter((audience) => !remaining.includes(audience))
}
