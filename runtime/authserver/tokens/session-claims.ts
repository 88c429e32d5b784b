/** Session and grant claims of an access token. The token depends on both the session and the grant. */
import type { Caller } from '../../net/index.ts'

export interface SessionClaims {
  readonly tsid: string
  readonly gid: string
  readonly sub: string
  /** The client that the user signed in to, even in a delegated token. */
  readonly client_id: string
}

/** Returns the session claims of a user's token; undefined for machines and for tokens from other issuers. */
export function sessionClaims({
  claims,
  subject: sub,
}: Pick<Caller, 'claims' | 'subject'>): SessionClaims | undefined {
  const { tsid, gid, client_id, session_client_id: clientId = client_id } = claims
  if (typeof tsid !== 'string' || typeof gid !== 'string' || typeof clientId !== 'string') return undefined
  return { tsid, gid, sub, client_id: clientId }
}
