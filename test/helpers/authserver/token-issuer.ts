/** A minimal issuer for tests: an ES256 key, its key set on a loopback port, and tokens for any subject. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'

export interface TokenIssuer {
  readonly issuer: string
  readonly jwksUrl: string
  readonly audience: string
  /** `incomingAuth` of a virtual server that trusts this issuer. */
  readonly incomingAuth: Record<string, unknown>
  /** `lifeSec`: seconds until the token expires. Default: 300. */
  token(subject: string, claims?: Record<string, unknown>, lifeSec?: number): Promise<string>
  close(): Promise<void>
}

export async function startTokenIssuer(): Promise<TokenIssuer> {
  const { publicKey, privateKey } = await generateKeyPair('ES256')
  const jwk = { ...(await exportJWK(publicKey)), kid: 'k1', alg: 'ES256', use: 'sig' }
  const server = createServer((_req, res) => {
    res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ keys: [jwk] }))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const issuer = `http://127.0.0.1:${port}`
  const jwksUrl = `${issuer}/jwks`
  const audience = 'vmcp-under-test'
  return {
    issuer,
    jwksUrl,
    audience,
    incomingAuth: {
      type: 'oidc',
      oidc: { issuer, audience, clientId: audience, jwksUrl, jwksAllowPrivateIp: true },
    },
    token: (subject, claims = {}, lifeSec = 300) =>
      new SignJWT(claims)
        .setProtectedHeader({ alg: 'ES256', kid: 'k1' })
        .setIssuer(issuer)
        .setAudience(audience)
        .setSubject(subject)
        .setIssuedAt()
        .setExpirationTime(Math.floor(Date.now() / 1000) + lifeSec)
        .sign(privateKey),
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
