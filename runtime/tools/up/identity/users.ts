/**
 * Stores the users of `gatehouse up --login` in a file that only its owner can read. The file contains hashes of
 * passwords, hashes of the keys in enrolment links, and the public keys of passkeys.
 */
import { randomBytes, randomUUID, timingSafeEqual } from 'node:crypto'
import { chmodSync, mkdirSync, readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { invalidConfig, isFields } from '../../../../schemas/index.ts'
import { systemReason } from '../../../config/index.ts'
import { tokenDigest } from '../../../net/index.ts'
import { writePrivate } from '../state.ts'

export interface Passkey {
  readonly id: string
  /** COSE key in base64url. */
  readonly publicKey: string
  readonly counter: number
  /** Host that the passkey belongs to. Browsers do not offer the passkey on other hosts. */
  readonly host: string
}

export interface LoginUser {
  /** Stable id of the user. A later user with the same name gets a different id. */
  readonly id: string
  readonly name: string
  readonly password?: string | undefined
  readonly passkeys: readonly Passkey[]
  /** Set until the user has used the link. */
  readonly enrolment?: { readonly digest: string; readonly until: number } | undefined
}

const linkMs = 24 * 3_600_000
const maxUsers = 200

/** Describes the names that `invite` accepts, for use in messages. */
const nameRule =
  'must have 1 to 64 letters, digits, or the characters . _ @ + -, and begin with a letter or digit'
const namePattern = /^[a-z0-9][a-z0-9._@+-]{0,63}$/

export class Users {
  readonly #path: string
  readonly #now: () => number
  #users: readonly LoginUser[]

  /**
   * Throws INVALID_CONFIG when the file cannot be read. If such a file were treated as empty, the next write would
   * remove its users.
   */
  constructor(path: string, now: () => number = Date.now) {
    this.#path = path
    this.#now = now
    this.#users = readUsers(path)
  }

  get all(): readonly LoginUser[] {
    return this.#users
  }

  named(name: string): LoginUser | undefined {
    return this.#users.find((user) => user.name === name.toLowerCase())
  }

  withId(id: string): LoginUser | undefined {
    return this.#users.find((user) => user.id === id)
  }

  withPasskey(id: string): LoginUser | undefined {
    return this.#users.find(({ passkeys }) => passkeys.some((passkey) => passkey.id === id))
  }

  /**
   * Adds a user, or finds an existing user. Returns the key of a new enrolment link, which replaces any earlier link.
   * Throws INVALID_CONFIG for an invalid name.
   */
  invite(given: string): string {
    const name = given.toLowerCase()
    if (!namePattern.test(name)) throw invalidConfig(`the user name ${JSON.stringify(given)} ${nameRule}`)
    const user = this.named(name) ?? { id: randomUUID(), name, passkeys: [] }
    if (!this.withId(user.id) && this.#users.length >= maxUsers)
      throw invalidConfig(`there are already ${maxUsers} users`)
    const key = randomBytes(32).toString('base64url')
    this.#save({ ...user, enrolment: { digest: tokenDigest(key), until: this.#now() + linkMs } })
    return key
  }

  /** Returns the user whose enrolment link contains the key; undefined for a used or expired link. */
  invited(key: string): LoginUser | undefined {
    const digest = Buffer.from(tokenDigest(key), 'hex')
    // The key has 256 random bits, so only the comparison of a digest must take constant time.
    const found = this.#users.find(({ enrolment }) => {
      const own = Buffer.from(enrolment?.digest ?? '', 'hex')
      return own.length === digest.length && timingSafeEqual(own, digest)
    })
    return found?.enrolment && found.enrolment.until > this.#now() ? found : undefined
  }

  /**
   * Stores the credential that the user chose, and invalidates the link. Earlier credentials no longer work. Returns
   * undefined when the link was used in the meantime.
   */
  enrol(
    key: string,
    credential: { readonly password: string } | { readonly passkey: Passkey },
  ): LoginUser | undefined {
    const user = this.invited(key)
    if (!user) return undefined
    const enrolled: LoginUser = {
      id: user.id,
      name: user.name,
      passkeys: 'passkey' in credential ? [credential.passkey] : [],
      ...('password' in credential && { password: credential.password }),
    }
    this.#save(enrolled)
    return enrolled
  }

  /**
   * Stores the counter of a passkey, which must increase with each use, and returns its user. Returns undefined when
   * the user or the passkey was removed in the meantime.
   */
  usedPasskey(id: string, counter: number): LoginUser | undefined {
    const user = this.withPasskey(id)
    if (!user) return undefined
    const passkeys = user.passkeys.map((passkey) => (passkey.id === id ? { ...passkey, counter } : passkey))
    const updated = { ...user, passkeys }
    this.#save(updated)
    return updated
  }

  /** Returns false when no user has this name. */
  remove(name: string): boolean {
    const user = this.named(name)
    if (!user) return false
    this.#write(this.#users.filter(({ id }) => id !== user.id))
    return true
  }

  #save(user: LoginUser): void {
    this.#write([...this.#users.filter(({ id }) => id !== user.id), user])
  }

  #write(users: readonly LoginUser[]): void {
    try {
      const folder = dirname(this.#path)
      mkdirSync(folder, { recursive: true, mode: 0o700 })
      chmodSync(folder, 0o700)
      writePrivate(this.#path, JSON.stringify({ users }))
    } catch (error) {
      throw invalidConfig(`cannot write ${this.#path}: ${systemReason(error)}`)
    }
    this.#users = users
  }
}

function readUsers(path: string): readonly LoginUser[] {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw invalidConfig(`cannot read ${path}: ${systemReason(error)}`)
  }
  let parsed: unknown
  try {
    parsed = JSON.parse(text)
  } catch {
    parsed = undefined
  }
  const users = isFields(parsed) ? parsed['users'] : undefined
  if (!Array.isArray(users) || !users.every(isUser))
    throw invalidConfig(`${path}: is not a file of users; repair it, or remove it to start without users`)
  return users
}

function isUser(value: unknown): value is LoginUser {
  return (
    isFields(value) &&
    typeof value['id'] === 'string' &&
    typeof value['name'] === 'string' &&
    ['string', 'undefined'].includes(typeof value['password']) &&
    Array.isArray(value['passkeys'])
  )
}
