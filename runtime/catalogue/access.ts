/**
 * Authenticates clients, and decides which servers each client sees.
 *
 * Without authentication, clients see only public servers. With authentication, they see the servers for which a policy
 * permits `read_resource` on `Resource::"<published name>"`, or all servers if there are no policies.
 */
import { isDeepStrictEqual } from 'node:util'
import type { CatalogueServer } from '../../schemas/index.ts'
import { byText } from '../../schemas/index.ts'
import type { CatalogueConfig } from '../config/index.ts'
import { type Authenticator, groupClaimsOf, incomingFromFile, makeAuthenticator } from '../incoming/index.ts'
import { nextShare, shareIsOver } from '../mcp/index.ts'
import type { Caller, Log } from '../net/index.ts'
import { makeAuthorizer } from '../policy/index.ts'
import type { Store } from '../store/index.ts'

/** The checks of clients, and the settings from which they were made. */
interface ClientChecks {
  readonly settings: Pick<CatalogueConfig, 'name' | 'incomingAuth'>
  readonly authenticator: Authenticator
  readonly authorizer: ReturnType<typeof makeAuthorizer> | undefined
}

export interface CatalogueAccess extends ClientChecks {
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

/**
 * Keeps the checks of `previous` if their settings are the same. Otherwise, each change of a server would fetch the
 * issuer's keys again, and reject every caller while the issuer is unreachable. Throws INVALID_CONFIG.
 */
export function makeAccess(
  { name, incomingAuth, servers }: CatalogueConfig,
  parts: AccessParts,
  previous?: ClientChecks,
): CatalogueAccess {
  const settings = { name, incomingAuth }
  const isSame = previous && isDeepStrictEqual(settings, previous.settings)
  const { authenticator, authorizer } = isSame ? previous : makeChecks(settings, parts)
  const isAnonymous = incomingAuth.type === 'anonymous'
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
    settings,
    authenticator,
    authorizer,
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

function makeChecks(settings: ClientChecks['settings'], parts: AccessParts): ClientChecks {
  const { authz, dpop } = settings.incomingAuth
  const authorizer =
    authz?.type === 'cedar' ? makeAuthorizer(authz, { serverName: settings.name, log: parts.log }) : undefined
  const incoming = incomingFromFile(settings.incomingAuth, { ...parts, groupClaims: groupClaimsOf(authz) })
  const authenticator = makeAuthenticator(incoming, {
    log: parts.log,
    ...(dpop && { dpop: { store: parts.proofs } }),
  })
  return { settings, authenticator, authorizer }
}
