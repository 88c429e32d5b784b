/**
 * Selects the issuer that checks an access token.
 *
 * The unverified `iss` claim only selects the issuer, by exact comparison and without a fallback. That issuer's
 * verifier then checks everything, including `iss`. Opaque tokens are checked by the single issuer that supports
 * introspection. Each issuer has its own keys and trust anchors, so an unreachable issuer affects only its own tokens.
 * Source: RFC 8725 section 3.8; docs/guides/oidc.md, "Several issuers".
 */
import { decodeJwt } from 'jose'
import { subjectPrefixOf } from '../../schemas/index.ts'
import type { Caller } from '../net/index.ts'
import { type Keys, maxTokenLength, TokenRefused } from '../oauth/index.ts'
import type { IncomingConfig, OidcConfig } from './config.ts'
import { type FetchParts, type IncomingFetches, makeFetches } from './fetches.ts'
import type { IdentityRules } from './identity.ts'
import { claimRenamer, foreignGroupRemover } from './prefixes.ts'
import { VerifiedTokens } from './verified-tokens.ts'
import { looksLikeJwt, TokenVerifier } from './verifier.ts'

/** Returns the caller for a token. Throws or rejects with an error that clients may see. */
export type TokenCheck = (token: string) => Caller | Promise<Caller>

export interface IssuerParts extends FetchParts {
  /** Keys of the first issuer. */
  readonly keys: Keys | undefined
  /** Fetch functions for the first issuer. */
  readonly fetches: IncomingFetches | undefined
  /** Reports the results of one issuer, and converts its errors. */
  readonly report: (check: TokenCheck) => TokenCheck
}

export interface IssuerChecks {
  readonly check: TokenCheck
  close(): Promise<void>
}

/** If there is only one issuer, the check is that issuer's verifier. */
export function makeIssuerChecks(
  { oidc, issuers = [], groupClaims }: Extract<IncomingConfig, { type: 'oidc' }>,
  parts: IssuerParts,
): IssuerChecks {
  const opened: IncomingFetches[] = []
  const verified = new VerifiedTokens(parts.now)
  function checkOf(
    config: OidcConfig,
    from: { readonly keys?: Keys | undefined; readonly fetches?: IncomingFetches | undefined },
    identity: Pick<IdentityRules, 'rename' | 'reserved'>,
  ): TokenCheck {
    const fetches = from.fetches ?? makeFetches(config, parts)
    opened.push(fetches)
    const verifier = new TokenVerifier(config, {
      keysFetch: fetches.keys,
      introspectionFetch: fetches.introspection,
      keys: from.keys,
      now: parts.now,
      verified,
      identity,
    })
    return parts.report((token) => verifier.verify(token))
  }

  const first = checkOf(oidc, parts, {
    reserved: issuers.filter((issuer) => !sharesSubjects(issuer, parts)).map(subjectPrefixOf),
    rename: issuers.length === 0 ? undefined : foreignGroupRemover(issuers, groupClaims),
  })
  const close = async (): Promise<void> => {
    await Promise.all(opened.map((fetches) => fetches.close()))
  }
  if (issuers.length === 0) return { check: first, close }
  const checks = [
    { config: oidc, check: first },
    ...issuers.map((config) => ({
      config,
      check: checkOf(config, {}, { rename: claimRenamer(config, groupClaims) }),
    })),
  ]
  const byIssuer = new Map(checks.map(({ config, check }) => [config.issuer, check]))
  const opaque = checks.find(({ config }) => config.introspectionUrl !== undefined)?.check
  const refuse = parts.report((token) => {
    throw new TokenRefused(looksLikeJwt(token) ? 'issuer' : 'malformed')
  })
  return { check: (token) => (selected(token, byIssuer, opaque) ?? refuse)(token), close }
}

/**
 * True when the embedded authorization server may issue tokens with this issuer's subjects: it exchanges this issuer's
 * tokens and adds the default prefix to their subjects. The ids of the server's own users never have a subject prefix.
 */
function sharesSubjects(
  { issuer = '', subjectPrefix }: OidcConfig & { readonly subjectPrefix?: string | undefined },
  { keys }: IssuerParts,
): boolean {
  return keys !== undefined && subjectPrefix === undefined && !issuer.includes('#')
}

function selected(
  token: string,
  byIssuer: ReadonlyMap<string | undefined, TokenCheck>,
  opaque: TokenCheck | undefined,
): TokenCheck | undefined {
  // Any verifier rejects a longer token before decoding it.
  if (token.length > maxTokenLength || !looksLikeJwt(token)) return opaque
  const issuer = unverifiedIssuer(token)
  return issuer === undefined ? undefined : byIssuer.get(issuer)
}

function unverifiedIssuer(token: string): string | undefined {
  try {
    const { iss } = decodeJwt(token)
    return typeof iss === 'string' ? iss : undefined
  } catch {
    return undefined
  }
}
