/**
 * Who is signed in to the console: sessions of this process, found by the hash of what the cookie holds. They end 30 minutes
 * after the last use and 8 hours after the login, whichever comes first, and are bounded in number.
 */
import { createHash, createHmac, randomBytes } from 'node:crypto'
import type { Caller } from '../../net/index.ts'

const idleMs = 30 * 60_000
const absoluteMs = 8 * 60 * 60_000
const maxSessions = 10_000

export interface ConsoleSession {
  readonly caller: Caller
  readonly name: string | undefined
  /** For the end of the session at the issuer. */
  readonly idToken: string
  /** When the user was last asked to sign in, milliseconds since the epoch. */
  readonly authenticatedAt: number
  readonly csrf: string
  readonly createdAt: number
  usedAt: number
}

export class LoginSessions {
  readonly #now: () => number
  /** By hash of the id: whoever reads memory dumps or errors cannot use it. Insertion order is order of login. */
  readonly #sessions = new Map<string, ConsoleSession>()
  readonly #csrfKey = randomBytes(32)

  constructor(now: () => number) {
    this.#now = now
  }

  /** The id for the cookie: 256 bits, a new one for each login. */
  open(facts: Omit<ConsoleSession, 'csrf' | 'createdAt' | 'usedAt'>): string {
    this.#evict()
    const id = randomBytes(32).toString('base64url')
    const now = this.#now()
    const csrf = createHmac('sha256', this.#csrfKey).update(id).digest('base64url')
    this.#sessions.set(keyOf(id), { ...facts, csrf, createdAt: now, usedAt: now })
    return id
  }

  /** `touch` false: looks without using. */
  find(id: string, { touch }: { readonly touch: boolean }): ConsoleSession | undefined {
    const key = keyOf(id)
    const session = this.#sessions.get(key)
    if (!session) return undefined
    if (this.#isOver(session)) {
      this.#sessions.delete(key)
      return undefined
    }
    if (touch) session.usedAt = this.#now()
    return session
  }

  end(id: string): void {
    this.#sessions.delete(keyOf(id))
  }

  #isOver({ usedAt, createdAt }: ConsoleSession): boolean {
    const now = this.#now()
    return now - usedAt > idleMs || now - createdAt > absoluteMs
  }

  #evict(): void {
    for (const [key, session] of this.#sessions) if (this.#isOver(session)) this.#sessions.delete(key)
    const [oldest] = this.#sessions.keys()
    if (this.#sessions.size >= maxSessions && oldest !== undefined) this.#sessions.delete(oldest)
  }
}

function keyOf(id: string): string {
  return createHash('sha256').update(id).digest('base64url')
}
