/** The kinds of clients (identity and capabilities) that a backend has seen. */
import type { ClientAbilities } from '../../model/session.ts'
import type { NewClientLimiter } from './new-client-limiter.ts'

/** Maximum number of client kinds to remember. */
const maxClientKinds = 1_024

export class ClientKinds {
  readonly #newClients: NewClientLimiter
  /** Oldest first. */
  readonly #seen = new Set<string>()

  constructor(newClients: NewClientLimiter) {
    this.#newClients = newClients
  }

  /**
   * Returns the capabilities that Gatehouse declares to the backend on behalf of a client. If too many new kinds of
   * clients have arrived recently, returns only the capabilities that a protocol revision defines.
   */
  abilitiesToDeclare(identity: string, abilities: ClientAbilities): ClientAbilities {
    const kind = `${identity} ${abilities.signature}`
    if (!abilities.plain || this.#seen.has(kind)) return abilities
    if (!this.#newClients.hasCapacity) return abilities.plain
    this.#newClients.take()
    const [oldest] = this.#seen
    if (oldest !== undefined && this.#seen.size >= maxClientKinds) this.#seen.delete(oldest)
    this.#seen.add(kind)
    return abilities
  }
}
