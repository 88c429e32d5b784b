/**
 * The keys that strategies bind their tokens to. Each backend has its own key, so that a shared key cannot reveal to
 * backends that they serve the same client. Keys and tokens exist only in memory.
 *
 * A token is bound to a key only if the backend does not accept bearer tokens or the token endpoint requires a proof.
 * Source: RFC 9449.
 */
import { LRUCache } from 'lru-cache'
import { Prover, type TokenProofOptions } from '../oauth/index.ts'

const maxBackends = 1_000

interface Backend {
  readonly prover: Prover
  /** True if the backend does not accept bearer tokens. */
  isRequired: boolean
}

export class BackendProvers {
  readonly #now: () => number
  readonly #backends = new LRUCache<string, Backend>({ max: maxBackends })

  constructor(now: () => number) {
    this.#now = now
  }

  /** Returns the options for requesting a token for a backend. */
  optionsFor(url: URL): TokenProofOptions {
    const { prover, isRequired } = this.#backendAt(url)
    return { prover, use: isRequired ? 'required' : 'demanded' }
  }

  /** Records that a backend does not accept bearer tokens. Returns false if it has already been recorded. */
  require(url: URL): boolean {
    const backend = this.#backendAt(url)
    if (backend.isRequired) return false
    backend.isRequired = true
    return true
  }

  #backendAt({ origin }: URL): Backend {
    const known = this.#backends.get(origin)
    if (known) return known
    const added = { prover: new Prover(undefined, this.#now), isRequired: false }
    this.#backends.set(origin, added)
    return added
  }
}
