/** A client that holds a key, and signs DPoP proofs with it. */
import { createHash, randomUUID } from 'node:crypto'
import { calculateJwkThumbprint, type CryptoKey, exportJWK, generateKeyPair, type JWK, SignJWT } from 'jose'

export interface ProofChanges {
  /** Members of the header that replace the usual ones. */
  readonly header?: Readonly<Record<string, unknown>>
  /** Claims that replace the usual ones; undefined removes a claim. */
  readonly claims?: Readonly<Record<string, unknown>>
  readonly nonce?: string | undefined
  /** Unix milliseconds. */
  readonly nowMs?: number
}

export interface DpopClient {
  readonly jkt: string
  readonly jwk: JWK
  readonly publicKey: CryptoKey
  /** The claim that binds a token to the key. */
  readonly cnf: { readonly jkt: string }
  /** Returns a proof for a request, with a token if one is given. */
  proof(method: string, url: string, token?: string, changes?: ProofChanges): Promise<string>
}

export async function makeDpopClient(alg = 'ES256'): Promise<DpopClient> {
  const { publicKey, privateKey } = await generateKeyPair(alg)
  const jwk = await exportJWK(publicKey)
  const jkt = await calculateJwkThumbprint(jwk)
  return {
    jkt,
    jwk,
    publicKey,
    cnf: { jkt },
    async proof(method, url, token, { header, claims, nonce, nowMs = Date.now() } = {}) {
      const payload = {
        jti: randomUUID(),
        htm: method,
        htu: url,
        iat: Math.floor(nowMs / 1000),
        ...(token === undefined ? {} : { ath: createHash('sha256').update(token).digest('base64url') }),
        ...(nonce === undefined ? {} : { nonce }),
        ...claims,
      }
      return new SignJWT(payload)
        .setProtectedHeader({ alg, typ: 'dpop+jwt', jwk, ...header })
        .sign(privateKey)
    },
  }
}
