/** Tokens for clients without a user: the grant client_credentials with a secret and with a signed assertion. */
import { randomBytes, randomUUID } from 'node:crypto'
import { type CryptoKey, exportJWK, generateKeyPair, type JWK, SignJWT } from 'jose'
import type { Http } from './http.ts'

/** One client may present 600 assertions per minute. */
export const keyJobCount = 20

/** Credentials of the clients `secret-job` and `key-job-…`. */
export interface Machine {
  readonly secret: string
  readonly jwk: JWK
  readonly privateKey: CryptoKey
}

export async function makeMachine(): Promise<Machine> {
  const { privateKey, publicKey } = await generateKeyPair('ES256', { extractable: true })
  const jwk = { ...(await exportJWK(publicKey)), kid: 'bench', use: 'sig' }
  return { secret: randomBytes(32).toString('base64url'), jwk, privateKey }
}

export async function tokenWithSecret(http: Http, issuer: string, { secret }: Machine): Promise<void> {
  const authorization = `Basic ${Buffer.from(`secret-job:${secret}`).toString('base64')}`
  await requestToken(http, issuer, {}, { authorization })
}

/** Requests a token as client number `number`. */
export async function tokenWithKey(
  http: Http,
  issuer: string,
  { privateKey }: Machine,
  number: number,
): Promise<void> {
  const clientId = `key-job-${number % keyJobCount}`
  const assertion = await new SignJWT({ jti: randomUUID() })
    .setProtectedHeader({ alg: 'ES256', kid: 'bench', typ: 'client-authentication+jwt' })
    .setIssuer(clientId)
    .setSubject(clientId)
    .setAudience(issuer)
    .setIssuedAt()
    .setExpirationTime('60s')
    .sign(privateKey)
  await requestToken(http, issuer, {
    client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
    client_assertion: assertion,
  })
}

async function requestToken(
  http: Http,
  issuer: string,
  form: Readonly<Record<string, string>>,
  headers: Readonly<Record<string, string>> = {},
): Promise<void> {
  const body = new URLSearchParams({ grant_type: 'client_credentials', ...form }).toString()
  const got = await http.post(`${issuer}/oauth/token`, body, headers)
  if (got.status !== 200) throw new Error(`client credentials: ${got.status} ${got.text}`)
}
