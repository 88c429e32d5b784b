/**
 * This process's console sessions, keyed by the hash of the cookie value. A session ends 30 minutes after its last use
 * or 8 hours after the login, whichever comes first. The number of sessions is limited.
 */
import { createHash, createHmac, randomBytes } from 'node:crypto'
import type { Caller } from '../../net/index.ts'

const idleMs = 30 * 60_000
const absoluteMs = 8 * 60 * 60_000
const maxSessions = 10_000

export interface ConsoleSession {
  readonly caller: Caller
  readonly name: string | undefined
  /** ID token, which ends the session at the issuer. */
  readonly idToken: string
  /** Time of the last login prompt, in milliseconds since the epoch. */
  readonly authenticatedAt: number
  readonly csrf: string
  readonly createdAt: number
  usedAt: number
}

export class LoginSessions {
  readonly #now: () => number
  /**
   * Sessions, keyed by a hash of the id, so memory dumps and errors contain no usable id. Insertion order is login
   * order.
   */
  readonly #sessions = new Map<string, ConsoleSession>()
  readonly #csrfKey = randomBytes(32)

  constructor(now: () => number) {
    this.#now = now
  }

  /** Opens a session and returns its id for the cookie: 256 bits, new for each login. */
  open(facts: Omit<ConsoleSession, 'csrf' | 'createdAt' | 'usedAt'>): string {
    this.#evict()
    const id = randomBytes(32).toString('base64url')
    const now = this.#now()
    const csrf = createHmac('sha256', this.#csrfKey).update(id).digest('base64url')
    this.#sessions.set(keyOf(id), { ...facts, csrf, createdAt: now, usedAt: now })
    return id
  }

  /** Returns a session. If `touch` is false, the call does not count as a use of the session. */
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
