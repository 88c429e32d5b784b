/**
 * Tokens for a session whose ports only known programs may use. All users of a machine can reach its loopback ports.
 */
import { envName } from '../../../schemas/index.ts'
import { localTokensVariable, vmcpEnvironment } from '../../config/index.ts'
import { type TokenDigests, tokenDigest } from '../../net/index.ts'
import type { LocalObject } from '../manifests/objects.ts'

export interface SessionAccess {
  /** The session's own token, for requests between its servers. */
  readonly token: string
  /** Digests of the clients' tokens, by client. Only virtual servers accept them. */
  readonly clients: TokenDigests
}

/** Returns the digests that the workload's listener accepts. */
export function acceptedTokens(parent: LocalObject, { token, clients }: SessionAccess): TokenDigests {
  const isEntrance = parent.kind === 'VirtualMCPServer'
  return { session: tokenDigest(token), ...(isEntrance && clients) }
}

/** Returns the variables for one of our own programs: the accepted tokens, and the token for its backends. */
export function accessEnvironment(
  parent: LocalObject,
  access: SessionAccess,
  objects: readonly LocalObject[],
): Record<string, string> {
  const own = { [localTokensVariable]: JSON.stringify(acceptedTokens(parent, access)) }
  if (parent.kind !== 'VirtualMCPServer') return own
  const header = JSON.stringify({ addPlaintextHeaders: { Authorization: `Bearer ${access.token}` } })
  // Other kinds of members are remote servers, which must not get the token.
  const members = objects.filter(({ kind }) => kind === 'MCPServer')
  const forBackends = members.map(({ metadata }) => [
    `${vmcpEnvironment.headerForward}${envName(metadata.name)}`,
    header,
  ])
  return { ...own, ...Object.fromEntries(forBackends) }
}
