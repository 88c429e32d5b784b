/**
 * The claim `cnf` of an access token: the key or the certificate whose possession its sender must prove.
 *
 * Source: RFC 7800 section 3; RFC 9449 section 6.1; RFC 8705 section 3.1.
 */
import { isFields } from '../../schemas/index.ts'

/** The key and the certificate that a token is bound to, or whose possession a request proved. */
export interface TokenBinding {
  /** Thumbprint of a key that signs DPoP proofs. */
  readonly jkt?: string | undefined
  /** SHA-256 thumbprint of a client certificate. */
  readonly x5t?: string | undefined
}

const certificateMember = 'x5t#S256'

/**
 * Returns the key and the certificate that the claim binds the token to, at least one of them. Returns undefined if the
 * claim is malformed, or has a member that this server cannot check.
 */
export function readConfirmation(claim: unknown): TokenBinding | undefined {
  if (!isFields(claim)) return undefined
  const { jkt, [certificateMember]: x5t, ...others } = claim
  if (Object.keys(others).length > 0 || !isThumbprint(jkt) || !isThumbprint(x5t)) return undefined
  return jkt === undefined && x5t === undefined ? undefined : { jkt, x5t }
}

function isThumbprint(value: unknown): value is string | undefined {
  return value === undefined || (typeof value === 'string' && value !== '')
}

/** Returns the claim for a new token; undefined for a bearer token. */
export function confirmationClaim({ jkt, x5t }: TokenBinding): object | undefined {
  return jkt === undefined && x5t === undefined ? undefined : { jkt, [certificateMember]: x5t }
}

/** True if the request proved everything that the token is bound to. */
export function isConfirmed({ jkt, x5t }: TokenBinding, proved: TokenBinding): boolean {
  return (jkt === undefined || jkt === proved.jkt) && (x5t === undefined || x5t === proved.x5t)
}
