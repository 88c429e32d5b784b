/**
 * The keys under which the lists of one backend are cached: declared abilities, and the identity of the requester where
 * what the backend answers depends on it. A session whose backend session announced a change has lists of its own.
 */
import type { BackendSettings } from '../../backends/settings.ts'
import type { SessionScope } from '../../backends/session-era/connections.ts'
import { credentialKey, requesterIdentity } from '../../pipeline/identity.ts'
import type { OperationClient } from '../../pipeline/operation.ts'

const maxForks = 1_024

export class ListingKeys {
  readonly #settings: Pick<BackendSettings, 'perCaller'>
  /** Keys of sessions that the backend shows something of their own. */
  readonly #forks = new Set<string>()

  constructor(settings: Pick<BackendSettings, 'perCaller'>) {
    this.#settings = settings
  }

  /** Equal for clients that see the same. */
  keyOf(client: OperationClient, signature: string): string {
    const fork = this.forkOf(client)
    if (fork !== undefined) return fork
    const identity = this.#identityOf(client)
    return identity === '' ? signature : `${signature} ${identity}`
  }

  /** Equal for clients whose credentials meet the same fate. */
  credentialOf(client: OperationClient): string {
    return this.#settings.perCaller ? credentialKey(client) : ''
  }

  #identityOf(client: OperationClient): string {
    return this.#settings.perCaller ? requesterIdentity(client) : ''
  }

  /** Key of the lists that the client's session has for itself; undefined when it has none. */
  forkOf(client: OperationClient): string | undefined {
    const { session } = client
    if (!session || this.#forks.size === 0) return undefined
    const key = forkKey(session.id, this.#identityOf(client))
    return this.#forks.has(key) ? key : undefined
  }

  hasFork({ session, identity }: SessionScope): boolean {
    return this.#forks.has(forkKey(session.id, identity))
  }

  /** Gives a session lists of its own. Returns their key; undefined when there are too many. */
  fork({ session, identity }: SessionScope): string | undefined {
    const key = forkKey(session.id, identity)
    if (this.#forks.size >= maxForks && !this.#forks.has(key)) return undefined
    this.#forks.add(key)
    return key
  }

  /** Takes the own lists of a session away, those of every identity. Returns their keys. */
  unfork(sessionId: string): readonly string[] {
    const start = forkKey(sessionId, '')
    const own = [...this.#forks].filter((key) => key.startsWith(start))
    for (const key of own) this.#forks.delete(key)
    return own
  }
}

function forkKey(sessionId: string, identity: string): string {
  return `session ${sessionId} ${identity}`
}
