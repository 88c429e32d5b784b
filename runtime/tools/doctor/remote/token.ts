/**
 * Checks an access token from --token-file or the login, without verifying its signature: its form, times, issuer and
 * audience. Never reports claims about the user.
 * Source: RFC 9068; RFC 7519.
 */
import { jsonFields } from '../../../../schemas/index.ts'
import { type JsonRecord, resourceCovers } from '../../../oauth/index.ts'
import { failed, ok, type CheckOutcome, skipped, warning } from '../report/finding.ts'
import { clientIdOf, joinList, type RemoteFacts, shownUrl, text } from './facts.ts'
import { verdictOn } from './verdict.ts'

const leewaySec = 5

export async function checkToken(facts: RemoteFacts): Promise<CheckOutcome> {
  const { token } = facts
  if (token === undefined) return skipped('requires --token-file or --login')
  const parts = token.split('.')
  if (parts.length === 5) return failed('token.encrypted', 'five parts: JWE')
  const claims = claimsOf(token)
  if (claims === undefined) return ok('opaque: only the server can check it')
  return checkTimes(claims) ?? checkIssuerOf(claims, facts) ?? checkAudience(claims, facts)
}

/** Returns the claims without verification. Undefined for a token that is not a JWS. */
export function claimsOf(token: string): JsonRecord | undefined {
  const parts = token.split('.')
  if (parts.length !== 3) return undefined
  return jsonFields(Buffer.from(parts[1]?.slice(0, 65_536) ?? '', 'base64url').toString())
}

function checkTimes(claims: JsonRecord): CheckOutcome | undefined {
  const now = Date.now() / 1000
  const { exp, nbf, iat } = claims
  if (typeof exp === 'number' && exp < now - leewaySec) {
    return failed('token.expired', `expired ${Math.round(now - exp)} s ago`)
  }
  const from = typeof nbf === 'number' ? nbf : typeof iat === 'number' ? iat : now
  return from > now + leewaySec
    ? failed('token.not-yet-valid', `becomes valid in ${Math.round(from - now)} s`)
    : undefined
}

function checkIssuerOf(claims: JsonRecord, { server, isOpen }: RemoteFacts): CheckOutcome | undefined {
  const iss = text(claims, 'iss')
  const issuer = text(server, 'issuer')
  if (isOpen === true || iss === undefined || issuer === undefined || iss === issuer) return undefined
  return failed('token.issuer', `iss is ${iss}, but the issuer is ${issuer}`)
}

export function audiencesOf({ aud }: JsonRecord): readonly string[] {
  return (Array.isArray(aud) ? aud : [aud]).filter(
    (audience): audience is string => typeof audience === 'string',
  )
}

async function checkAudience(claims: JsonRecord, facts: RemoteFacts): Promise<CheckOutcome> {
  const { resource, target } = facts
  if (claims['nonce'] !== undefined && claims['scope'] === undefined && claims['scp'] === undefined) {
    return warning('token.kind', 'has a nonce and no scope, like an ID token')
  }
  const audiences = audiencesOf(claims)
  const clientId = clientIdOf(facts)
  const named = text(resource, 'resource')
  const fits = audiences.some(
    (audience) =>
      audience === named ||
      audience === clientId ||
      (URL.canParse(audience) && resourceCovers(audience, target.href)),
  )
  if (fits) return ok(`for ${joinList(audiences)}`)
  // Some servers require an audience that differs from their URL, so the server's response decides.
  const seen = `aud is ${joinList(audiences)}, but the resource is ${named ?? shownUrl(target)}`
  return (await verdictOn(facts)) === 'refused'
    ? failed('token.audience', `${seen}; the server rejected the token`)
    : warning('token.audience', seen)
}
