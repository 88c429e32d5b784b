/**
 * An access token that was handed in, read and not verified: its form, times, issuer and audience. Claims about the user
 * are never reported. Source: RFC 9068; RFC 7519.
 */
import { type JsonRecord, resourceCovers } from '../../oauth/index.ts'
import { jsonObject } from '../probe/mcp.ts'
import { failed, ok, type CheckOutcome, skipped, warning } from '../report/finding.ts'
import { listed, type RemoteFacts, shownUrl, text } from './facts.ts'

const leewaySec = 5

export async function checkToken(facts: RemoteFacts): Promise<CheckOutcome> {
  const { token } = facts.options
  if (token === undefined) return skipped('needs --token-file')
  const parts = token.split('.')
  if (parts.length === 5) return failed('token.encrypted', 'five parts: JWE')
  const claims = parts.length === 3 ? decode(parts[1] ?? '') : undefined
  if (claims === undefined) return ok('opaque: only the server can read it')
  return checkTimes(claims) ?? checkIssuerOf(claims, facts) ?? checkAudience(claims, facts)
}

function decode(part: string): JsonRecord | undefined {
  return jsonObject(Buffer.from(part.slice(0, 65_536), 'base64url').toString())
}

function checkTimes(claims: JsonRecord): CheckOutcome | undefined {
  const now = Date.now() / 1000
  const { exp, nbf, iat } = claims
  if (typeof exp === 'number' && exp < now - leewaySec) {
    return failed('token.expired', `expired ${Math.round(now - exp)} s ago`)
  }
  const from = typeof nbf === 'number' ? nbf : typeof iat === 'number' ? iat : now
  return from > now + leewaySec
    ? failed('token.not-yet-valid', `valid in ${Math.round(from - now)} s`)
    : undefined
}

function checkIssuerOf(claims: JsonRecord, { server, isOpen }: RemoteFacts): CheckOutcome | undefined {
  const iss = text(claims, 'iss')
  const issuer = text(server, 'issuer')
  if (isOpen === true || iss === undefined || issuer === undefined || iss === issuer) return undefined
  return failed('token.issuer', `iss is ${iss}, the issuer is ${issuer}`)
}

function checkAudience(claims: JsonRecord, { resource, target, options }: RemoteFacts): CheckOutcome {
  if (claims['nonce'] !== undefined && claims['scope'] === undefined && claims['scp'] === undefined) {
    return warning('token.kind', 'it has a nonce and no scope, as ID tokens do')
  }
  const { aud } = claims
  const audiences = (Array.isArray(aud) ? aud : [aud]).filter((one): one is string => typeof one === 'string')
  const named = text(resource, 'resource')
  const fits = audiences.some(
    (one) =>
      one === named || one === options.clientId || (URL.canParse(one) && resourceCovers(one, target.href)),
  )
  if (fits) return ok(`for ${listed(audiences)}`)
  // Some servers want another audience than their URL; the server itself has the last word.
  return warning(
    'token.audience',
    `aud is ${listed(audiences)}, the resource is ${named ?? shownUrl(target)}`,
  )
}
