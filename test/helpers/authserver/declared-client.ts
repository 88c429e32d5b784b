/** Declared clients of an authorization server under test: their settings, keys and assertions. */
import { randomBytes, randomUUID } from 'node:crypto'
import { type CryptoKey, exportJWK, generateKeyPair, type JWK, SignJWT } from 'jose'
import type { DeclaredClientSettings } from '../../../runtime/config/index.ts'
import { type Rig, tokenRequest } from './authserver.ts'

export const assertionType = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'

export interface TestKey {
  readonly privateKey: CryptoKey
  readonly alg: string
  /** Public key with its `kid`. */
  readonly jwk: JWK & { readonly kid: string }
}

export async function makeKey(alg = 'ES256'): Promise<TestKey> {
  const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true })
  return { privateKey, alg, jwk: { ...(await exportJWK(publicKey)), kid: randomUUID() } }
}

/** Settings of a client for the first resource of the issuer. */
export function declared(
  clientId: string,
  resources: readonly string[],
  more: Partial<DeclaredClientSettings> = {},
): DeclaredClientSettings {
  return {
    clientId,
    signingAlg: 'ES256',
    scopes: ['tools:read', 'tools:write'],
    resources,
    tokenMs: 900_000,
    ...more,
  }
}

export function newSecret(): string {
  return randomBytes(32).toString('base64url')
}

interface AssertionOptions {
  readonly header?: Record<string, unknown>
  /** Undefined members are omitted. */
  readonly claims?: Record<string, unknown>
}

/** Signs an assertion that is valid for a minute. */
export async function signAssertion(
  key: TestKey,
  { clientId, issuer, nowMs = Date.now() }: { clientId: string; issuer: string; nowMs?: number },
  { header = {}, claims = {} }: AssertionOptions = {},
): Promise<string> {
  const nowSec = Math.floor(nowMs / 1000)
  const all = {
    iss: clientId,
    sub: clientId,
    aud: issuer,
    jti: randomUUID(),
    iat: nowSec,
    exp: nowSec + 60,
    ...claims,
  }
  const present = Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined))
  return new SignJWT(present)
    .setProtectedHeader({ alg: key.alg, kid: key.jwk.kid, typ: 'client-authentication+jwt', ...header })
    .sign(key.privateKey)
}

/** Requests a machine token with an assertion. */
export function requestWithAssertion(
  rig: Pick<Rig, 'issuer'>,
  assertion: string,
  parameters: Readonly<Record<string, string | undefined>> = {},
): Promise<Response> {
  return tokenRequest(rig, {
    grant_type: 'client_credentials',
    client_assertion_type: assertionType,
    client_assertion: assertion,
    ...parameters,
  })
}
