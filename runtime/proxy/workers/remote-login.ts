/** The proxy's login in a worker: the primary process's token, cached until shortly before it expires. */
import { isFields } from '../../../schemas/index.ts'
import { type Challenge, isProofKey, type ProofKey } from '../../oauth/index.ts'
import { type WorkerChannel } from '../../process/index.ts'
import { type AccessToken, LoginTokens, type Rejection, type TokenSource } from '../../outgoing/index.ts'

/** The login state that workers receive. Only Gatehouse processes exchange this state. */
export interface LoginState {
  readonly token?: string | undefined
  /** The key that the token is bound to. */
  readonly proofKey?: ProofKey | undefined
  readonly idToken?: string | undefined
  /** Time after which the token must not be sent, in Unix milliseconds; undefined for no limit. */
  readonly usableUntil?: number | undefined
  /** False when the login is not complete. The worker then requests the state again. */
  readonly known: boolean
}

export class RemoteLogin implements TokenSource {
  readonly #channel: WorkerChannel
  readonly #now: () => number
  readonly #tokens = new LoginTokens()
  #state: LoginState = { known: false }

  constructor(channel: WorkerChannel, now: () => number = Date.now) {
    this.#channel = channel
    this.#now = now
  }

  token(): AccessToken | undefined | Promise<AccessToken | undefined> {
    const { known, usableUntil } = this.#state
    if (known && (usableUntil === undefined || usableUntil > this.#now())) return this.#current
    return this.#ask('token')
  }

  get #current(): AccessToken | undefined {
    const { token, proofKey } = this.#state
    return token === undefined ? undefined : this.#tokens.tokenFor(token, proofKey)
  }

  get idToken(): string | undefined {
    return this.#state.idToken
  }

  concerns(status: number, challenge: Challenge | undefined): boolean {
    const { known, token } = this.#state
    if (status === 401) return known && (token !== undefined || challenge !== undefined)
    return status === 403 && token !== undefined && challenge?.params.get('error') === 'insufficient_scope'
  }

  async refused(rejection: Rejection): Promise<void> {
    await this.#ask('refused', rejection)
  }

  /** Receives a new state from the primary. */
  update(state: unknown): void {
    if (isState(state)) this.#state = state
  }

  async #ask(name: string, argument?: unknown): Promise<AccessToken | undefined> {
    this.update(await this.#channel.call(name, argument))
    return this.#current
  }
}

function isState(value: unknown): value is LoginState {
  if (!isFields(value) || typeof value['known'] !== 'boolean') return false
  return value['proofKey'] === undefined || isProofKey(value['proofKey'])
}
