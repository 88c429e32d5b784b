/**
 * Logins in progress, each bound to the browser that started it. Pending logins expire after ten minutes, and their
 * number is limited.
 */
import { randomBytes } from 'node:crypto'
import type { LoginSecrets } from '../../oauth/index.ts'

const lifeMs = 10 * 60_000
const maxPending = 10_000

export interface PendingLogin {
  readonly secrets: LoginSecrets
  /** Path of the page to open after login. */
  readonly to: string
  /** True when the login required the issuer to prompt the user. */
  readonly again: boolean
  readonly expiresAt: number
}

export class PendingLogins {
  readonly #now: () => number
  /** Logins, keyed by the browser's cookie value, in the order in which they started. */
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

  /** Removes and returns a pending login, so a login can be completed only once. */
  take(id: string): PendingLogin | undefined {
    const login = this.#pending.get(id)
    this.#pending.delete(id)
    return login && login.expiresAt > this.#now() ? login : undefined
  }
}
