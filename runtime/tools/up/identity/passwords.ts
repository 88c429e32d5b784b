/**
 * Hashes passwords with scrypt. A stored hash contains its parameters, so that later versions can change them.
 * Source: RFC 7914; OWASP Password Storage Cheat Sheet (N = 2^17, r = 8, p = 1).
 */
import { randomBytes, scrypt, timingSafeEqual } from 'node:crypto'
import { GatehouseError } from '../../../../schemas/index.ts'

const cost = { N: 2 ** 17, r: 8, p: 1 }
const keyBytes = 32
/** Computing a hash takes about 0.3 s and uses 128 MB of memory. */
const maxWaiting = 8

let waiting = 0
let queue: Promise<unknown> = Promise.resolve()

/** Minimum and maximum length in characters. Source: NIST SP 800-63B section 3.1.1.2. */
export const passwordLength = { min: 15, max: 256 } as const

/** Returns the hash to store. Rejects with OVERLOADED. */
export async function hashPassword(password: string): Promise<string> {
  const salt = randomBytes(16)
  const key = await derive(password, salt)
  return ['scrypt', cost.N, cost.r, cost.p, salt.toString('base64url'), key.toString('base64url')].join('$')
}

/**
 * True if the password has this hash. Without a hash, does the same work and returns false, so that the time does not
 * depend on whether the user exists. Rejects with OVERLOADED.
 */
export async function isPassword(password: string, stored: string | undefined): Promise<boolean> {
  const [, , , , salt = '', key = ''] = stored?.split('$') ?? []
  const expected = Buffer.from(key, 'base64url')
  const found = await derive(password, Buffer.from(salt, 'base64url'))
  return expected.length === found.length && timingSafeEqual(expected, found)
}

/** Derives one key at a time, because each derivation needs a lot of memory. */
async function derive(password: string, salt: Buffer): Promise<Buffer> {
  if (waiting >= maxWaiting) throw new GatehouseError('OVERLOADED')
  waiting++
  const work = queue.then(
    () =>
      new Promise<Buffer>((resolve, reject) => {
        const text = password.normalize('NFKC')
        scrypt(text, salt, keyBytes, { ...cost, maxmem: 256 * 1024 * 1024 }, (error, key) =>
          error ? reject(error) : resolve(key),
        )
      }),
  )
  queue = work.catch(() => undefined)
  return work.finally(() => {
    waiting--
  })
}
