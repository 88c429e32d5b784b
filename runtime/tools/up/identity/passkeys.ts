/**
 * Registers and checks passkeys. A passkey belongs to the host of the login pages, and replaces the user name and the
 * password.
 * Source: Web Authentication Level 3; @simplewebauthn/server.
 */
import {
  type AuthenticationResponseJSON,
  generateAuthenticationOptions,
  generateRegistrationOptions,
  type RegistrationResponseJSON,
  verifyAuthenticationResponse,
  verifyRegistrationResponse,
} from '@simplewebauthn/server'
import { isFields } from '../../../../schemas/index.ts'
import type { Passkey, LoginUser, Users } from './users.ts'

const challengeMs = 5 * 60_000
const maxChallenges = 1000

export class Passkeys {
  readonly #origin: string
  readonly #host: string
  readonly #users: Users
  /** Challenges, keyed by the login or link that they were created for. */
  readonly #challenges = new Map<string, { readonly challenge: string; readonly until: number }>()

  constructor(origin: string, users: Users) {
    this.#origin = origin
    this.#host = new URL(origin).hostname
    this.#users = users
  }

  async registrationOptions(user: LoginUser, key: string): Promise<object> {
    const options = await generateRegistrationOptions({
      rpName: 'Gatehouse',
      rpID: this.#host,
      userID: new TextEncoder().encode(user.id),
      userName: user.name,
      attestationType: 'none',
      authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
    })
    this.#remember(key, options.challenge)
    return options
  }

  /** Returns the passkey; undefined when the response is invalid. */
  async register(key: string, response: unknown): Promise<Passkey | undefined> {
    const expectedChallenge = this.#take(key)
    if (expectedChallenge === undefined || !isFields(response)) return undefined
    const { verified, registrationInfo } = await verifyRegistrationResponse({
      response: response as unknown as RegistrationResponseJSON,
      expectedChallenge,
      expectedOrigin: this.#origin,
      expectedRPID: this.#host,
      requireUserVerification: true,
    }).catch(() => ({ verified: false, registrationInfo: undefined }))
    if (!verified || !registrationInfo) return undefined
    const { id, publicKey, counter } = registrationInfo.credential
    if (this.#users.withPasskey(id)) return undefined
    return { id, publicKey: Buffer.from(publicKey).toString('base64url'), counter, host: this.#host }
  }

  async signInOptions(login: string): Promise<object> {
    const options = await generateAuthenticationOptions({ rpID: this.#host, userVerification: 'required' })
    this.#remember(login, options.challenge)
    return options
  }

  /** Returns the user who signed the login's challenge; undefined when the response is invalid. */
  async signIn(login: string, response: unknown): Promise<LoginUser | undefined> {
    const expectedChallenge = this.#take(login)
    if (expectedChallenge === undefined || !isFields(response)) return undefined
    const { id } = response
    const user = typeof id === 'string' ? this.#users.withPasskey(id) : undefined
    const passkey = user?.passkeys.find((known) => known.id === id)
    if (!user || !passkey) return undefined
    const { verified, authenticationInfo } = await verifyAuthenticationResponse({
      response: response as unknown as AuthenticationResponseJSON,
      expectedChallenge,
      expectedOrigin: this.#origin,
      expectedRPID: this.#host,
      requireUserVerification: true,
      credential: {
        id: passkey.id,
        publicKey: Uint8Array.from(Buffer.from(passkey.publicKey, 'base64url')),
        counter: passkey.counter,
      },
    }).catch(() => ({ verified: false, authenticationInfo: undefined }))
    if (!verified || !authenticationInfo) return undefined
    return this.#users.usedPasskey(passkey.id, authenticationInfo.newCounter)
  }

  #remember(key: string, challenge: string): void {
    this.#challenges.delete(key)
    const [oldest] = this.#challenges.keys()
    if (oldest !== undefined && this.#challenges.size >= maxChallenges) this.#challenges.delete(oldest)
    this.#challenges.set(key, { challenge, until: Date.now() + challengeMs })
  }

  /** Removes and returns the challenge, so that it can be used only once. */
  #take(key: string): string | undefined {
    const found = this.#challenges.get(key)
    this.#challenges.delete(key)
    return found && found.until > Date.now() ? found.challenge : undefined
  }
}
