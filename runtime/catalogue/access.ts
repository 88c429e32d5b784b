/**
 * Decides which servers a client sees: the authentication of clients, and the policies.
 *
 * Without authentication, clients see only public servers. With authentication, they see the servers for which a policy
 * permits `read_resource` on `Resource::"<published name>"`, or all servers if there are no policies.
 */
import type { CatalogueServer } from '../../schemas/index.ts'
import { byText } from '../../schemas/index.ts'
import type { CatalogueConfig } from '../config/index.ts'
import { type Authenticator, groupClaimsOf, incomingFromFile, makeAuthenticator } from '../incoming/index.ts'
import { nextShare, shareIsOver } from '../mcp/index.ts'
import type { Caller, Log } from '../net/index.ts'
import { makeAuthorizer } from '../policy/index.ts'
import type { Store } from '../store/index.ts'

export interface CatalogueAccess {
  readonly authenticator: Authenticator
  /** True if clients need no credentials. */
  readonly isAnonymous: boolean
  /** Returns the servers that a caller may see, sorted by name. */
  visible(caller: Caller): Promise<readonly CatalogueServer[]>
  /**
   * Returns a server that the caller may see. Decides before it looks for the server, so that an unknown name and a
   * denied name take the same time.
   */
  find(caller: Caller, name: string): Promise<CatalogueServer | undefined>
}

interface AccessParts {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly log: Log
  /** Store for used DPoP proofs, which a reload keeps. */
  readonly proofs: Store
}

/** Throws INVALID_CONFIG. */
export function makeAccess(
  { name, incomingAuth, servers }: CatalogueConfig,
  parts: AccessParts,
): CatalogueAccess {
  const { authz, dpop, type } = incomingAuth
  const isAnonymous = type === 'anonymous'
  const authorizer =
    authz?.type === 'cedar' ? makeAuthorizer(authz, { serverName: name, log: parts.log }) : undefined
  const incoming = incomingFromFile(incomingAuth, { ...parts, groupClaims: groupClaimsOf(authz) })
  const authenticator = makeAuthenticator(incoming, {
    log: parts.log,
    ...(dpop && { dpop: { store: parts.proofs } }),
  })
  const listed = servers
    .filter((server) => !isAnonymous || server.public)
    .sort((one, other) => byText(one.name, other.name))
  const byName = new Map(listed.map((server) => [server.name, server]))

  /** Returns the check for a caller. */
  async function checkFor(caller: Caller): Promise<(id: string) => boolean> {
    if (!authorizer) return () => true
    const subject = await authorizer.subject(caller)
    return (id) => authorizer.decide(subject, { action: 'read_resource', id }) === 'permitted'
  }

  return {
    authenticator,
    isAnonymous,
    async visible(caller) {
      const isVisible = await checkFor(caller)
      const found: CatalogueServer[] = []
      for (const server of listed) {
        // All callers share the time of a turn, because a decision can take milliseconds.
        if (authorizer && shareIsOver()) await nextShare()
        if (isVisible(server.name)) found.push(server)
      }
      return found
    },
    async find(caller, id) {
      const isVisible = (await checkFor(caller))(id)
      const server = byName.get(id)
      return isVisible ? server : undefined
    },
  }
}
