/** The proxy's login as a worker sees it: the token of the primary process, cached until shortly before it ends. */
import { isFields } from '../../../schemas/index.ts'
import type { Challenge } from '../../oauth/index.ts'
import { type WorkerChannel } from '../../process/index.ts'
import type { TokenSource } from '../model/credential.ts'

/** What a worker is told. Crosses a pipe between our own processes only. */
export interface LoginState {
  readonly token?: string | undefined
  readonly idToken?: string | undefined
  /** Unix milliseconds. */
  readonly expiresAt?: number | undefined
  /** False: the login is not complete, ask again. */
  readonly known: boolean
}

const marginMs = 10_000

export class RemoteLogin implements TokenSource {
  readonly #channel: WorkerChannel
  readonly #now: () => number
  #state: LoginState = { known: false }

  constructor(channel: WorkerChannel, now: () => number = Date.now) {
    this.#channel = channel
    this.#now = now
  }

  token(): string | undefined | Promise<string | undefined> {
    const { known, token, expiresAt } = this.#state
    if (known && (expiresAt === undefined || expiresAt - marginMs > this.#now())) return token
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

  /** The primary tells a new state. */
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
