/** Logins that were begun and did not come back yet: each bound to the browser that began it, for ten minutes. Bounded. */
import { randomBytes } from 'node:crypto'
import type { LoginSecrets } from '../../oauth/index.ts'

const lifeMs = 10 * 60_000
const maxPending = 10_000

export interface PendingLogin {
  readonly secrets: LoginSecrets
  /** Path of the page to go to afterwards. */
  readonly to: string
  /** The issuer was told to ask the user, whatever it remembers. */
  readonly again: boolean
  readonly expiresAt: number
}

export class PendingLogins {
  readonly #now: () => number
  /** By what the cookie of the browser holds; insertion order is order of begin. */
  readonly #pending = new Map<string, PendingLogin>()

  constructor(now: () => number) {
    this.#now = now
  }

  begin(login: Omit<PendingLogin, 'expiresAt'>): string {
    const id = randomBytes(32).toString('base64url')
    for (const [key, { expiresAt }] of this.#pending) {
      if (expiresAt > this.#now() && this.#pending.size < maxPending) break
      this.#pending.delete(key)
    }
    this.#pending.set(id, { ...login, expiresAt: this.#now() + lifeMs })
    return id
  }

  /** Each can be finished once. */
  take(id: string): PendingLogin | undefined {
    const login = this.#pending.get(id)
    this.#pending.delete(id)
    return login && login.expiresAt > this.#now() ? login : undefined
  }
}
