/** The proxy's login in a worker: the primary process's token, cached until shortly before it expires. */
import { isFields } from '../../../schemas/index.ts'
import type { Challenge } from '../../oauth/index.ts'
import { type WorkerChannel } from '../../process/index.ts'
import type { TokenSource } from '../../outgoing/index.ts'

/** The login state that workers receive. This is sent only between our own processes. */
export interface LoginState {
  readonly token?: string | undefined
  readonly idToken?: string | undefined
  /** Time until which the token can be sent, in Unix milliseconds; undefined for no limit. */
  readonly usableUntil?: number | undefined
  /** False when the login is not complete; the worker then asks again. */
  readonly known: boolean
}

export class RemoteLogin implements TokenSource {
  readonly #channel: WorkerChannel
  readonly #now: () => number
  #state: LoginState = { known: false }

  constructor(channel: WorkerChannel, now: () => number = Date.now) {
    this.#channel = channel
    this.#now = now
  }

  token(): string | undefined | Promise<string | undefined> {
    const { known, token, usableUntil } = this.#state
    if (known && (usableUntil === undefined || usableUntil > this.#now())) return token
    return this.#ask('token')
  }

  get idToken(): string | undefined {
    return this.#state.idToken
  }

  concerns(status: number, challenge: Challenge | undefined): boolean {
    const { known, token } = this.#state
    if (status === 401) return known && (token !== undefined || challenge !== undefined)
    return status === 403 && token !== undefined && challenge?.params.get('error') === 'insufficient_scope'
  }

  async refused(
    status: number,
    challenge: Challenge | undefined,
    url: string,
    usedToken: string | undefined,
  ): Promise<void> {
    await this.#ask('refused', { status, challenge, url, usedToken })
  }

  /** Receives a new state from the primary. */
  update(state: unknown): void {
    if (isState(state)) this.#state = state
  }

  async #ask(name: string, argument?: unknown): Promise<string | undefined> {
    this.update(await this.#channel.call(name, argument))
    return this.#state.token
  }
}

function isState(value: unknown): value is LoginState {
  return isFields(value) && typeof value['known'] === 'boolean'
}
