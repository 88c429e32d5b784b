/** An issuer of RS256 tokens for the benchmarks, in this process. */
import { createSign, generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface Tokens {
  /** Flags of a proxy that accepts the tokens. */
  readonly flags: readonly string[]
  /** Returns a new token of another user. */
  token(): string
  close(): void
}

const audience = 'bench'

export async function startTokens(): Promise<Tokens> {
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2_048 })
  const jwk = { ...publicKey.export({ format: 'jwk' }), kid: 'k1', alg: 'RS256', use: 'sig' }
  const server = createServer((_req, res) => {
    res.setHeader('content-type', 'application/json')
    res.end(JSON.stringify({ keys: [jwk] }))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const issuer = `http://localhost:${(server.address() as AddressInfo).port}`
  let users = 0
  return {
    flags: ['--oidc-issuer', issuer, '--oidc-audience', audience, '--oidc-jwks-url', `${issuer}/jwks`],
    token() {
      const now = Math.floor(Date.now() / 1_000)
      const claims = {
        iss: issuer,
        aud: audience,
        sub: `user-${++users}`,
        iat: now,
        nbf: now - 5,
        exp: now + 3_600,
        email: 'someone@example.com',
        name: 'Some One',
        groups: ['dev', 'ops', 'all'],
        client_id: 'bench',
      }
      const signed = [{ alg: 'RS256', kid: 'k1', typ: 'JWT' }, claims].map(base64url).join('.')
      return `${signed}.${createSign('RSA-SHA256').update(signed).sign(privateKey, 'base64url')}`
    },
    close: () => void server.close(),
  }
}

function base64url(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}
