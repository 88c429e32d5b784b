/**
 * Signs DPoP proofs as a client: for token requests, and for requests with an access token that is bound to the key.
 *
 * Stores a nonce for each server and purpose, because the authorization server and the resource server may share an
 * origin but not their nonces. Signs with ES256, which every server that supports DPoP should accept.
 * Source: RFC 9449 sections 4.2, 5, 7.1, 8 and 9; RFC 7638.
 */
import { createPrivateKey, generateKeyPairSync, hash, type KeyObject, sign } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { LRUCache } from 'lru-cache'
import { isFields } from '../../../schemas/index.ts'
import { randomBuffer } from '../../net/index.ts'
import { findChallenge, parseChallenges, proofAlgorithm } from '../challenge.ts'

/** A private key as JWK, which can be stored. Contains a secret: never log it. */
export interface ProofKey {
  readonly kty: 'EC'
  readonly crv: 'P-256'
  readonly x: string
  readonly y: string
  readonly d: string
}

/** Signs the proofs for one access token. */
export interface TokenProof {
  /** Returns a new proof for one request. */
  sign(method: string, url: string | URL): string
  /**
   * Stores the nonce from a response. Returns true if the server rejected the request only because of its nonce, so
   * that a request with another proof may succeed.
   */
  note(url: string | URL, status: number, headers: IncomingHttpHeaders): boolean
}

const maxServers = 100
/** RFC 9449 section 8.1: NQCHAR. */
const nonceForm = /^[\x21\x23-\x5b\x5d-\x7e]{1,1024}$/

export function isProofKey(value: unknown): value is ProofKey {
  if (!isFields(value) || value['kty'] !== 'EC' || value['crv'] !== 'P-256') return false
  return ['x', 'y', 'd'].every((member) => typeof value[member] === 'string')
}

function generateProofKey(): ProofKey {
  const {
    x = '',
    y = '',
    d = '',
  } = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({
    format: 'jwk',
  })
  return { kty: 'EC', crv: 'P-256', x, y, d }
}

interface LoadedKey {
  readonly jwk: ProofKey
  readonly jkt: string
  readonly signing: KeyObject
  /** The encoded header of every proof. */
  readonly header: string
}

export class Prover {
  readonly #now: () => number
  /** Nonces, keyed by the server's origin and the purpose. */
  readonly #nonces = new LRUCache<string, string>({ max: maxServers })
  #loaded: LoadedKey | undefined

  /** Generates a key on first use if none is given. */
  constructor(key?: ProofKey, now: () => number = Date.now) {
    this.#now = now
    if (key) this.#loaded = load(key)
  }

  get #key(): LoadedKey {
    return (this.#loaded ??= load(generateProofKey()))
  }

  /** The private key, for storage next to the token. */
  get key(): ProofKey {
    return this.#key.jwk
  }

  /** Thumbprint of the public key. */
  get jkt(): string {
    return this.#key.jkt
  }

  /** Returns a new proof for a request to a token endpoint. */
  signTokenRequest(url: string): string {
    return this.#sign('POST', url, this.#nonces.get(nonceKey('token', url)))
  }

  /** Stores the nonce from a token endpoint's response. Returns false if the response contains no nonce. */
  noteTokenResponse(url: string, headers: Headers): boolean {
    return this.#note('token', url, headers.get('dpop-nonce'))
  }

  /** Returns the signer for requests with a token that is bound to this key. */
  forToken(accessToken: string): TokenProof {
    const ath = hash('sha256', accessToken, 'base64url')
    return {
      sign: (method, url) => this.#sign(method, url, this.#nonces.get(nonceKey('resource', url)), ath),
      note: (url, status, headers) => {
        const isStored = this.#note('resource', url, headers['dpop-nonce'])
        if (!isStored || status !== 401) return false
        const challenge = findChallenge(parseChallenges(headers['www-authenticate']), 'dpop', 'error')
        return challenge?.params.get('error') === 'use_dpop_nonce'
      },
    }
  }

  #note(purpose: Purpose, url: string | URL, nonce: unknown): boolean {
    if (typeof nonce !== 'string' || !nonceForm.test(nonce)) return false
    this.#nonces.set(nonceKey(purpose, url), nonce)
    return true
  }

  #sign(method: string, url: string | URL, nonce: string | undefined, ath?: string): string {
    const { origin, pathname } = new URL(url)
    const claims = {
      jti: randomBuffer(16).toString('base64url'),
      htm: method,
      htu: origin + pathname,
      iat: Math.floor(this.#now() / 1000),
      ath,
      nonce,
    }
    const { header, signing } = this.#key
    const input = `${header}.${encode(claims)}`
    const signature = sign('sha256', Buffer.from(input), { key: signing, dsaEncoding: 'ieee-p1363' })
    return `${input}.${signature.toString('base64url')}`
  }
}

type Purpose = 'token' | 'resource'

function nonceKey(purpose: Purpose, url: string | URL): string {
  return `${purpose} ${new URL(url).origin}`
}

function load(jwk: ProofKey): LoadedKey {
  const { kty, crv, x, y } = jwk
  return {
    jwk,
    jkt: hash('sha256', JSON.stringify({ crv, kty, x, y }), 'base64url'),
    signing: createPrivateKey({ key: { ...jwk }, format: 'jwk' }),
    header: encode({ typ: 'dpop+jwt', alg: proofAlgorithm, jwk: { kty, crv, x, y } }),
  }
}

function encode(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}
