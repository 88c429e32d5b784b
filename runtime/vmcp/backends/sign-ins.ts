/**
 * The user's logins at the backends. Logins exist only on a server on the user's own machine: `gatehouse dev`, `run`
 * and `up`.
 *
 * A backend uses a login if the configuration contains no credentials for the backend. A login's start address works
 * only with this server's key. Otherwise, another user of the machine could sign in with a different account.
 */
import { type OAuthSettings, userLogin, vmcpEnvironment } from '../../config/index.ts'
import type { Log } from '../../net/index.ts'
import { isEqualSecret } from '../../oauth/index.ts'
import { OnDemandLogin, type SignInStep } from '../../outgoing/index.ts'

/** Maximum time in milliseconds for which a login waits for the user. */
const timeoutMs = 10 * 60_000

export interface SignInsParts {
  readonly env: Readonly<Record<string, string | undefined>>
  /** Returns this server's address. */
  readonly origin: () => string
  readonly log: Log
  readonly now: () => number
  /** Called when a backend starts or stops waiting for the user. */
  readonly onChange: (backend: string) => void
}

export const signInPath = '/sign-in/'

/** Returns the logins. Returns undefined unless the server runs on the user's own machine. */
export function makeSignIns(parts: SignInsParts): SignIns | undefined {
  const key = parts.env[vmcpEnvironment.signInKey]
  return key ? new SignIns(key, parts) : undefined
}

export class SignIns {
  readonly #key: string
  readonly #parts: SignInsParts
  readonly #settings: OAuthSettings
  readonly #logins = new Map<string, { readonly url: string; readonly login: OnDemandLogin }>()

  constructor(key: string, parts: SignInsParts) {
    this.#key = key
    this.#parts = parts
    this.#settings = { ...userLogin(parts.env), timeoutMs }
  }

  /** Returns the backend's login. The login stays the same as long as the backend's URL does not change. */
  loginFor(backend: string, url: URL, ca: string | undefined): OnDemandLogin {
    const known = this.#logins.get(backend)
    if (known?.url === url.href) return known.login
    void known?.login.close()
    const { log, now, onChange } = this.#parts
    const login = new OnDemandLogin({
      url,
      ca,
      settings: this.#settings,
      log: log.child({ backend }),
      now,
      address: () => this.#addressOf(backend),
      onChange: () => onChange(backend),
    })
    this.#logins.set(backend, { url: url.href, login })
    return login
  }

  /** Closes the logins of all backends that are not in `backends`. */
  retain(backends: ReadonlySet<string>): void {
    for (const [name, { login }] of this.#logins) {
      if (backends.has(name)) continue
      this.#logins.delete(name)
      void login.close()
    }
  }

  /**
   * Returns the address where the user signs in, without the key. Returns undefined if the backend requires no sign-in.
   */
  waitingAt(backend: string): string | undefined {
    return this.#logins.get(backend)?.login.isWaiting ? this.#addressOf(backend) : undefined
  }

  /** Adds the key to a login's address. Only the user may see the result. */
  withKey(address: string): string {
    return `${address}?key=${this.#key}`
  }

  #addressOf(backend: string): string {
    return `${this.#parts.origin()}${signInPath}${encodeURIComponent(backend)}`
  }

  isKey(given: string): boolean {
    return isEqualSecret(given, this.#key)
  }

  /** Starts a login for one browser. Resolves to undefined if no backend has this name. */
  async begin(backend: string): Promise<SignInStep | undefined> {
    return this.#logins.get(backend)?.login.begin()
  }

  async close(): Promise<void> {
    await Promise.all([...this.#logins.values()].map(({ login }) => login.close()))
    this.#logins.clear()
  }
}
