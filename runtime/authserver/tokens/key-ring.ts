/**
 * The keys of this server: JWT signing keys with their published set, and the HMAC secrets.
 *
 * The first key signs. All keys can verify tokens and are published, so that tokens stay valid when another key becomes
 * the first. The first HMAC secret protects new codes, refresh tokens, cookies and seals; all secrets can verify them.
 * HKDF derives a separate key for each use, so a value made for one use is never valid for another. Without configured
 * keys, this module generates them, and they are lost when the process ends. Signing key rotation: add the new key in
 * second place and roll out; move it to first place and roll out; drop the old key after one token lifetime. HMAC
 * secret rotation: put the new secret first (ring-holder.ts); drop the old secret once nothing needs it
 * (storage/rotation.ts).
 * Source: docs/reference/specification/external-auth.md (signingKeySecretRefs, hmacSecretRefs); RFC 7517, RFC 7638, RFC
 * 5869.
 */
import {
  createHmac,
  createPrivateKey,
  createPublicKey,
  createSecretKey,
  generateKeyPairSync,
  hkdfSync,
  type KeyObject,
  randomBytes,
  timingSafeEqual,
} from 'node:crypto'
import { calculateJwkThumbprint, exportJWK, type JSONWebKeySet, type JWK } from 'jose'
import { GatehouseError, isFields } from '../../../schemas/index.ts'
import type { AuthServerSecrets } from '../../config/index.ts'
import { sealId, type Store } from '../../store/index.ts'

export interface SigningKey {
  readonly kid: string
  readonly alg: string
  readonly privateKey: KeyObject
  readonly publicKey: KeyObject
}

/** The purposes of a MAC, each with its own key. */
type MacPurpose = 'code' | 'refresh' | 'browser' | 'csrf'

export interface KeyRing {
  readonly signing: SigningKey
  readonly all: readonly SigningKey[]
  /** Document of jwks_uri. Returns the same object for the lifetime of the ring. */
  readonly jwks: JSONWebKeySet
  /** Raw secrets for sealing the store, with the current secret first. */
  readonly sealSecrets: readonly Uint8Array[]
  /** Id of the current HMAC secret in stored records (sealId). */
  readonly secretId: string
  readonly ephemeral: { readonly signing: boolean; readonly hmac: boolean }
  /** Returns the HMAC-SHA-256 of the text with the current secret, in base64url. */
  mac(purpose: MacPurpose, data: string): string
  /** True when this MAC was made with any of the secrets. Constant time per secret. */
  isMac(purpose: MacPurpose, data: string, mac: string): boolean
}

/**
 * Builds the ring. Throws an INVALID_CONFIG error that lists the position of every key and secret that cannot be used.
 * Reuses the ephemeral keys of `previous`, so that a reload of unrelated files does not end every session.
 */
export async function makeKeyRing(secrets: AuthServerSecrets, previous?: KeyRing): Promise<KeyRing> {
  const violations: string[] = []
  const keys: SigningKey[] = []
  for (const [index, pem] of secrets.signingKeys.entries()) {
    const read = parseKey(pem)
    if (typeof read === 'string') violations.push(`signingKeySecretRefs[${index}] ${read}`)
    else keys.push(await makeSigningKey(read.privateKey, read.alg))
  }
  for (const [index, secret] of secrets.hmacSecrets.entries()) {
    if (secret.length < 32) violations.push(`hmacSecretRefs[${index}] must have at least 32 bytes`)
  }
  if (violations.length > 0) throw new GatehouseError('INVALID_CONFIG', { detail: violations.join('; ') })

  const ephemeral = { signing: keys.length === 0, hmac: secrets.hmacSecrets.length === 0 }
  if (ephemeral.signing)
    keys.push(previous?.ephemeral.signing ? previous.signing : await makeSigningKey(newPrivateKey(), 'ES256'))
  const hmac = ephemeral.hmac
    ? [...(previous?.ephemeral.hmac ? previous.sealSecrets : [randomBytes(32)])]
    : [...secrets.hmacSecrets]
  return assembleRing(keys, hmac, ephemeral)
}

async function assembleRing(
  keys: readonly SigningKey[],
  secrets: readonly Uint8Array[],
  ephemeral: KeyRing['ephemeral'],
): Promise<KeyRing> {
  const [signing] = keys
  if (!signing) throw new GatehouseError('INTERNAL')
  const unique = keys.filter((key, index) => keys.findIndex((other) => other.kid === key.kid) === index)
  const jwks = { keys: await Promise.all(unique.map(toPublicJwk)) }
  // Uses key objects, because wrapping a Buffer on every use costs several times as much as the MAC.
  const derived = new Map<string, KeyObject>()

  function keyFor(purpose: MacPurpose, index: number): KeyObject {
    const name = `${purpose} ${index}`
    const known = derived.get(name)
    if (known) return known
    const key = createSecretKey(
      new Uint8Array(hkdfSync('sha256', secrets[index] ?? '', 'gatehouse', `authserver ${purpose}`, 32)),
    )
    derived.set(name, key)
    return key
  }
  const macBy = (purpose: MacPurpose, index: number, data: string): Buffer =>
    createHmac('sha256', keyFor(purpose, index)).update(data).digest()

  return {
    signing,
    all: unique,
    jwks,
    sealSecrets: secrets,
    secretId: sealId(secrets[0] ?? new Uint8Array()),
    ephemeral,
    mac: (purpose, data) => macBy(purpose, 0, data).toString('base64url'),
    isMac(purpose, data, mac) {
      const given = Buffer.from(mac, 'base64url')
      if (given.length !== 32 || given.toString('base64url') !== mac) return false
      return secrets.some((_, index) => timingSafeEqual(macBy(purpose, index, data), given))
    },
  }
}

async function makeSigningKey(privateKey: KeyObject, alg: string): Promise<SigningKey> {
  const publicKey = createPublicKey(privateKey)
  const kid = await calculateJwkThumbprint(await exportJWK(publicKey))
  return { kid, alg, privateKey, publicKey }
}

async function toPublicJwk(key: SigningKey): Promise<JWK> {
  return { ...(await exportJWK(key.publicKey)), kid: key.kid, alg: key.alg, use: 'sig' }
}

function newPrivateKey(): KeyObject {
  return generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey
}

const ephemeralName = 'ephemeral-keys'

/**
 * Returns the ring that all processes of one server use for keys that are not configured. The ring is passed to
 * `makeKeyRing` as `previous`. The first process creates and stores the ring. Rejects with STORE_DOWN.
 */
export async function sharedRing(shared: Store): Promise<KeyRing> {
  let text = await shared.get(ephemeralName)
  if (text === undefined) {
    const made = {
      signingKey: newPrivateKey().export({ type: 'pkcs8', format: 'pem' }).toString(),
      hmacSecret: randomBytes(32).toString('base64'),
    }
    await shared.set(ephemeralName, JSON.stringify(made), { onlyIf: 'absent' })
    text = await shared.get(ephemeralName)
  }
  const stored: unknown = text === undefined ? undefined : JSON.parse(text)
  const { signingKey, hmacSecret } = isFields(stored) ? stored : {}
  if (typeof signingKey !== 'string' || typeof hmacSecret !== 'string') throw new GatehouseError('STORE_DOWN')
  const key = await makeSigningKey(createPrivateKey(signingKey), 'ES256')
  return assembleRing([key], [Buffer.from(hmacSecret, 'base64')], { signing: true, hmac: true })
}

const curves: ReadonlyMap<string, string> = new Map([
  ['prime256v1', 'ES256'],
  ['secp384r1', 'ES384'],
  ['secp521r1', 'ES512'],
])

/**
 * Returns the key and its algorithm, or the reason why it cannot be used. Accepts unencrypted PKCS#1, SEC 1 and PKCS#8
 * PEM.
 */
function parseKey(pem: string): { privateKey: KeyObject; alg: string } | string {
  let privateKey: KeyObject
  try {
    privateKey = createPrivateKey(pem)
  } catch {
    return 'is not an unencrypted PEM private key (PKCS#1, SEC 1 or PKCS#8)'
  }
  const { asymmetricKeyType: type, asymmetricKeyDetails: details } = privateKey
  if (type === 'rsa') {
    const bits = details?.modulusLength ?? 0
    return bits >= 2048
      ? { privateKey, alg: 'RS256' }
      : `is an RSA key of ${bits} bits; at least 2048 are required`
  }
  if (type === 'ed25519') return { privateKey, alg: 'EdDSA' }
  const alg = curves.get(details?.namedCurve ?? '')
  if (type === 'ec' && alg) return { privateKey, alg }
  return 'must be an RSA, an EC (P-256, P-384, P-521) or an Ed25519 key'
}
