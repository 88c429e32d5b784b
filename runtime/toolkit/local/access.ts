/** Tokens for a session whose ports accept only known programs. All users of a machine can reach its loopback ports. */
import { envName } from '../../../schemas/index.ts'
import { localTokensVariable, vmcpEnvironment } from '../../config/index.ts'
import { type TokenDigests, tokenDigest } from '../../net/index.ts'
import type { LocalObject } from '../manifests/objects.ts'

export interface SessionAccess {
  /** The session's own token, for requests between its servers. */
  readonly token: string
  /** Digests of the clients' tokens, keyed by client. Only virtual servers accept these tokens. */
  readonly clients: TokenDigests
  /**
   * Names of all MCPServer objects that the session may declare. The virtual server sends the session's token to these
   * servers. The set is fixed, because a change would restart the virtual server. Other kinds of members are remote and
   * must not receive the token.
   */
  readonly members: readonly string[]
  /**
   * Origin of the login pages that the virtual server serves. Undefined if the virtual server has no login of its own.
   */
  readonly loginPages?: string | undefined
}

/** Returns the digests that the workload's listener accepts. */
export function acceptedTokens(parent: LocalObject, { token, clients }: SessionAccess): TokenDigests {
  const isEntrance = parent.kind === 'VirtualMCPServer'
  return { session: tokenDigest(token), ...(isEntrance && clients) }
}

/** Returns the variables for a Gatehouse program: the accepted tokens, and the token for its backends. */
export function accessEnvironment(parent: LocalObject, access: SessionAccess): Record<string, string> {
  const own = { [localTokensVariable]: JSON.stringify(acceptedTokens(parent, access)) }
  if (parent.kind !== 'VirtualMCPServer') return own
  const header = JSON.stringify({ addPlaintextHeaders: { Authorization: `Bearer ${access.token}` } })
  const forBackends = access.members.map((name) => [
    `${vmcpEnvironment.headerForward}${envName(name)}`,
    header,
  ])
  return {
    ...own,
    ...(access.loginPages !== undefined && { [vmcpEnvironment.loginPages]: access.loginPages }),
    ...Object.fromEntries(forBackends),
  }
}
