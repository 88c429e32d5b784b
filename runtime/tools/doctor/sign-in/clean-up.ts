/**
 * Cleans up after a test login: ends the session, revokes the tokens (RFC 7009), deletes the registration (RFC 7592),
 * and closes the port.
 */
import { deleteRegistration, revokeToken } from '../../../oauth/index.ts'
import type { RemoteFacts } from '../remote/facts.ts'
import { endSession } from '../remote/session.ts'
import type { SignIn } from './state.ts'
import { ok, type CheckOutcome, skipped, warning } from '../report/finding.ts'

export async function cleanUpLogin(facts: RemoteFacts): Promise<CheckOutcome> {
  const { signIn, peers } = facts
  if (signIn?.ready === undefined) return skipped('no login was started')
  const { ready, issued, redirect } = signIn
  await endSession(facts)
  redirect?.finish({ ok: false })
  await ready.callback.close()
  // Ignore the login's signal, because cleanup also runs after Ctrl-C.
  const call = { fetch: peers.fetch }
  const { server, client, registration } = ready
  const revoke = async (tokens: ReadonlySet<string>): Promise<boolean> => {
    const results = await Promise.all([...tokens].map((token) => revokeToken(server, client, token, call)))
    return results.every((isRevoked) => isRevoked)
  }
  // Revoke refresh tokens first, because many servers then revoke the whole grant.
  const seen = tokensText(issued, await revoke(issued.refresh), await revoke(issued.access))
  if (registration === undefined) return ok(seen)
  if (await deleteRegistration(registration, call)) return ok(`${seen}, the client is deleted`)
  return warning('login.left', `${seen}; the client ${registration.clientId} stays registered`)
}

function tokensText({ refresh, access }: SignIn['issued'], isRefresh: boolean, isAccess: boolean): string {
  if (access.size === 0) return 'no tokens were issued'
  if (isRefresh && isAccess) return 'the tokens are revoked'
  // Servers that do not query the issuer continue to accept a signed token until it expires.
  const rest = 'access tokens stay valid until they expire'
  if (refresh.size === 0) return rest
  return isRefresh ? `refresh tokens are revoked; ${rest}` : 'tokens stay valid until they expire'
}
