/**
 * Who is calling: the authenticated client of one request, as every module below `incoming/` sees it.
 *
 * Built by `incoming/` (JWT, introspection, anonymous, local). `token` is the credential that was presented; it is
 * never logged, and serialises to nothing.
 */
/** Issuer of identities that nobody checked: no real issuer can claim it, because a real issuer is a URL. */
export const localIssuer = 'gatehouse-local'

export interface Caller {
  /** Issuer of the identity; localIssuer for anonymous and local callers. */
  readonly issuer: string
  readonly subject: string
  /** All claims of the token, as received. */
  readonly claims: Readonly<Record<string, unknown>>
  /** Human name for the audit log: name, else e-mail, else subject. */
  readonly displayName: string
  /** The bearer token that was presented; undefined for anonymous and local callers. Not enumerable. */
  readonly token?: string | undefined
  /** Stable key for caches and session binding: issuer NUL subject. */
  readonly key: string
}

/** Makes a caller; `token` is hidden from enumeration, JSON and inspection. */
export function makeCaller(from: {
  issuer: string
  subject: string
  claims: Readonly<Record<string, unknown>>
  displayName?: string
  token?: string
}): Caller {
  const caller = {
    issuer: from.issuer,
    subject: from.subject,
    claims: from.claims,
    displayName: from.displayName ?? from.subject,
    key: `${from.issuer}\0${from.subject}`,
  }
  Object.defineProperty(caller, 'token', { value: from.token, enumerable: false })
  return caller
}
