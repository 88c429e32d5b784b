/**
 * Cache keys for one backend's lists. A key contains the declared capabilities. A key also contains the requester's
 * identity if the backend's responses depend on that identity. A session has its own lists if its backend session has
 * announced a change.
 */
import type { BackendSettings } from '../../backends/settings.ts'
import type { SessionScope } from '../../backends/session-era/connections.ts'
import { credentialKey, requesterIdentity } from '../../model/identity.ts'
import type { OperationClient } from '../../model/session.ts'

const maxForks = 1_024

export class ListingKeys {
  readonly #settings: Pick<BackendSettings, 'perCaller'>
  readonly #forks = new Set<string>()
  /** Keys of sessions that have their own lists. */
  readonly forks: ReadonlySet<string> = this.#forks

  constructor(settings: Pick<BackendSettings, 'perCaller'>) {
    this.#settings = settings
  }

  /** Returns the same key for clients that see the same lists. */
  keyOf(client: OperationClient, signature: string): string {
    const fork = this.forkOf(client)
    if (fork !== undefined) return fork
    const identity = this.#identityOf(client)
    return identity === '' ? signature : `${signature} ${identity}`
  }

  /** Returns equal keys for two clients if their credentials succeed or fail together. */
  credentialOf(client: OperationClient): string {
    return this.#settings.perCaller ? credentialKey(client) : ''
  }

  #identityOf(client: OperationClient): string {
    return this.#settings.perCaller ? requesterIdentity(client) : ''
  }

  /** Returns the key for a session's own lists. Returns undefined if the session has no lists of its own. */
  forkOf(client: OperationClient): string | undefined {
    const { session } = client
    if (!session || this.#forks.size === 0) return undefined
    const key = forkKey(session.id, this.#identityOf(client))
    return this.#forks.has(key) ? key : undefined
  }

  hasFork({ session, identity }: SessionScope): boolean {
    return this.#forks.has(forkKey(session.id, identity))
  }

  /**
   * Creates separate lists for a session and returns their key. Returns undefined if too many sessions have their own
   * lists.
   */
  fork({ session, identity }: SessionScope): string | undefined {
    const key = forkKey(session.id, identity)
    if (this.#forks.size >= maxForks && !this.#forks.has(key)) return undefined
    this.#forks.add(key)
    return key
  }

  /** Removes a session's own lists for all identities and returns the keys of these lists. */
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
