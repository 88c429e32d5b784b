/**
 * The end of a login that was for a test only: the session is ended, the tokens are revoked (RFC 7009), the registration is
 * deleted (RFC 7592), the port is closed.
 */
import { deleteRegistration, revokeToken } from '../../../oauth/index.ts'
import type { RemoteFacts } from '../remote/facts.ts'
import { endSession } from '../remote/session.ts'
import type { SignIn } from './state.ts'
import { ok, type CheckOutcome, skipped, warning } from '../report/finding.ts'

export async function giveBack(facts: RemoteFacts): Promise<CheckOutcome> {
  const { signIn, peers } = facts
  if (signIn?.ready === undefined) return skipped('nothing was made')
  const { ready, issued, redirect } = signIn
  await endSession(facts)
  redirect?.finish({ ok: false })
  await ready.callback.close()
  // Not with the signal of the login: this is what has to happen after Ctrl-C as well.
  const call = { fetch: peers.fetch }
  const { server, client, registration } = ready
  const revoke = async (tokens: ReadonlySet<string>): Promise<boolean> => {
    const each = await Promise.all([...tokens].map((token) => revokeToken(server, client, token, call)))
    return each.every((isRevoked) => isRevoked)
  }
  // The refresh tokens first: many servers end the whole grant with one.
  const seen = tokensText(issued, await revoke(issued.refresh), await revoke(issued.access))
  if (registration === undefined) return ok(seen)
  if (await deleteRegistration(registration, call)) return ok(`${seen}, the client is deleted`)
  return warning('login.left', `${seen}; the client ${registration.clientId} stays registered`)
}

function tokensText({ refresh, access }: SignIn['issued'], isRefresh: boolean, isAccess: boolean): string {
  if (access.size === 0) return 'no tokens were given'
  if (isRefresh && isAccess) return 'the tokens are revoked'
  // Servers that never ask the issuer take a signed token until its end.
  const rest = 'access tokens live until they end'
  if (refresh.size === 0) return rest
  return isRefresh ? `refresh tokens are revoked, ${rest}` : 'tokens live until they end'
}
