/** Hosts of an isolated network that simulate every server that Gatehouse connects to. */
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import { redirectUri } from '../authserver/authserver.ts'
import { type Host, jsonHost } from './isolated-network.ts'

const { publicKey, privateKey } = await generateKeyPair('ES256')
const jwk = { ...(await exportJWK(publicKey)), kid: 'k1', alg: 'ES256', use: 'sig' }
/** Issued by `idp.example` for `https://gateway.example/mcp`. */
export const accessToken = await new SignJWT({ scope: 'read' })
  .setProtectedHeader({ alg: 'ES256', kid: 'k1' })
  .setIssuer('https://idp.example')
  .setSubject('alice')
  .setAudience('https://gateway.example/mcp')
  .setExpirationTime('1h')
  .sign(privateKey)

/** Issued by `tokens.example` for `https://target.example`. */
const identityAssertion = await new SignJWT({})
  .setProtectedHeader({ alg: 'ES256', typ: 'oauth-id-jag+jwt' })
  .setAudience('https://target.example')
  .setExpirationTime('1h')
  .sign(privateKey)

const sendJson = (res: Parameters<Host>[1], value: unknown, status = 200): void =>
  void res.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(value))

/** An MCP server. With `token`, it rejects requests without that token and names its authorization server. */
const mcp =
  (token?: string): Host =>
  ({ method, path, headers, body }, res) => {
    if (path.startsWith('/.well-known/oauth-protected-resource'))
      return sendJson(res, {
        resource: 'https://login.example/mcp',
        authorization_servers: ['https://idp.example'],
      })
    if (token !== undefined && headers.authorization !== `Bearer ${token}`) {
      const document = 'https://login.example/.well-known/oauth-protected-resource/mcp'
      res.writeHead(401, { 'WWW-Authenticate': `Bearer resource_metadata="${document}"` }).end()
      return
    }
    if (method !== 'POST') return void res.writeHead(405).end()
    const message = JSON.parse(body) as {
      id?: unknown
      method: string
      params?: { protocolVersion?: string }
    }
    if (message.id === undefined) return void res.writeHead(202).end()
    const results: Record<string, object> = {
      initialize: {
        protocolVersion: message.params?.protocolVersion ?? '2025-11-25',
        capabilities: { tools: {} },
        serverInfo: { name: 'remote', version: '1' },
      },
      'tools/list': { tools: [{ name: 'echo', inputSchema: { type: 'object' } }] },
      'tools/call': { content: [{ type: 'text', text: 'hello' }] },
    }
    const result = results[message.method]
    const error = { code: -32601, message: 'Method not found' }
    sendJson(res, { jsonrpc: '2.0', id: message.id, ...(result ? { result } : { error }) })
  }

const issuerDocument = {
  issuer: 'https://idp.example',
  authorization_endpoint: 'https://idp.example/authorize',
  token_endpoint: 'https://tokens.example/token',
  registration_endpoint: 'https://idp.example/register',
  jwks_uri: 'https://keys.example/jwks',
  response_types_supported: ['code'],
  code_challenge_methods_supported: ['S256'],
}

const stsAnswer = `<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials>
<AccessKeyId>AK</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>st</SessionToken>
<Expiration>2099-01-01T00:00:00Z</Expiration></Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`

const tokens: Host = ({ body }, res) =>
  sendJson(res, {
    access_token: 'from-tokens.example',
    token_type: 'Bearer',
    expires_in: 3600,
    ...(body.includes('token-exchange') && {
      issued_token_type: body.includes('id-jag')
        ? 'urn:ietf:params:oauth:token-type:id-jag'
        : 'urn:ietf:params:oauth:token-type:access_token',
      ...(body.includes('id-jag') && { access_token: identityAssertion, token_type: 'N_A' }),
    }),
  })

export const outsideHosts: Readonly<Record<string, Host>> = {
  'mcp.example': mcp(),
  'login.example': mcp('from-tokens.example'),
  'idp.example': (request, res) =>
    request.path === '/register'
      ? sendJson(res, { client_id: 'registered', ...(JSON.parse(request.body) as object) }, 201)
      : jsonHost({
          '/.well-known/openid-configuration': issuerDocument,
          '/.well-known/oauth-authorization-server': issuerDocument,
          '/introspect': { active: true, sub: 'alice', aud: 'https://gateway.example/mcp', exp: 4e9 },
          '/me': { sub: 'alice' },
        })(request, res),
  'keys.example': jsonHost({ '/jwks': { keys: [jwk] } }),
  'tokens.example': tokens,
  'sts.example': (_request, res) => res.writeHead(200, { 'Content-Type': 'text/xml' }).end(stsAnswer),
  'client.example': jsonHost({
    '/client.json': {
      client_id: 'https://client.example/client.json',
      client_name: 'Described Client',
      redirect_uris: [redirectUri],
      token_endpoint_auth_method: 'none',
    },
  }),
  'webhook.example': (_request, res) => sendJson(res, { allow: true }),
  'embed.example': (_request, res) => sendJson(res, { data: [{ index: 0, embedding: [1, 0] }] }),
  'collector.example': (_request, res) => res.end(),
  'relay.example': (_request, res) => res.writeHead(403).end(),
}
