/**
 * A minimal OpenID provider for the benchmark: the code contains the audience and nonce of the ID token, so that a
 * login costs one call. Prints its issuer. Only the server that uses it is measured.
 */
import { createServer, type IncomingMessage } from 'node:http'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'

const { privateKey, publicKey } = await generateKeyPair('ES256')
const jwks = { keys: [{ ...(await exportJWK(publicKey)), alg: 'ES256', kid: 'k', use: 'sig' }] }
let issuer = ''

async function formOf(req: IncomingMessage): Promise<URLSearchParams> {
  const parts: Buffer[] = []
  for await (const part of req) parts.push(part as Buffer)
  return new URLSearchParams(Buffer.concat(parts).toString())
}

async function response(req: IncomingMessage): Promise<object> {
  if (req.url === '/jwks') return jwks
  if (req.url !== '/token') {
    return {
      issuer,
      authorization_endpoint: `${issuer}/authorize`,
      token_endpoint: `${issuer}/token`,
      jwks_uri: `${issuer}/jwks`,
      response_types_supported: ['code'],
      token_endpoint_auth_methods_supported: ['client_secret_post'],
    }
  }
  const [sub, nonce] = ((await formOf(req)).get('code') ?? '').split('.')
  const idToken = await new SignJWT({ nonce })
    .setProtectedHeader({ alg: 'ES256', kid: 'k' })
    .setIssuer(issuer)
    .setAudience('gatehouse')
    .setSubject(sub ?? '')
    .setIssuedAt()
    .setExpirationTime('1h')
    .sign(privateKey)
  return {
    access_token: `at-${sub}`,
    refresh_token: `rt-${sub}`,
    token_type: 'Bearer',
    expires_in: 3600,
    id_token: idToken,
  }
}

const server = createServer((req, res) => {
  void response(req).then((body) => {
    res.setHeader('content-type', 'application/json')
    res.end(JSON.stringify(body))
  })
})
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  issuer = `http://127.0.0.1:${typeof address === 'object' && address ? address.port : 0}`
  console.log(JSON.stringify(issuer))
})
