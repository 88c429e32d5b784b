/**
 * `gatehouse doctor URL` with staged failures: a real MCP server and a real OpenID provider with one broken part at a
 * time. In each case the doctor must report the right check, hop, code and fix. This file covers the endpoint and the
 * metadata.
 */
import t from 'tap'
import { type Case, isMcp, isMetadata, runCases, withMetadata, without } from '../../helpers/doctor/cases.ts'
import { sendJson, sendText } from '../../helpers/doctor/staged.ts'

t.setTimeout(180_000)

const endpoint: readonly Case[] = [
  {
    name: 'a redirect to another path',
    bend: {
      server: (req, res) => isMcp(req) && !!res.writeHead(308, { location: '/v2/mcp?key=secret' }).end(),
    },
    code: 'endpoint.redirect',
    hop: 'MCP endpoint',
    fix: /Use http:\/\/127\.0\.0\.1:\d+\/v2\/mcp: /,
  },
  {
    name: 'the wrong path',
    bend: {},
    path: '/wrong',
    code: 'endpoint.not-found',
    hop: 'MCP endpoint',
    fix: /Try http:\/\/127\.0\.0\.1:\d+\/mcp\./,
  },
  {
    name: 'a web page instead of the server',
    bend: { server: (req, res) => isMcp(req) && sendText(res, 200, '<html>app</html>', 'text/html') },
    code: 'endpoint.html',
    observed: /^status 200, a web page: app$/,
    hop: 'MCP endpoint',
    fix: /route the path to the server/,
  },
  {
    name: 'a host name that the server does not accept',
    bend: { server: (req, res) => isMcp(req) && sendText(res, 421, 'Invalid Host header') },
    code: 'endpoint.host',
    hop: 'MCP endpoint',
    observed: /^status 421: Invalid Host header$/,
    fix: /Allow this host name/,
  },
  {
    name: 'a host name that the SDK of the server rejects with 403',
    bend: {
      server: (req, res) =>
        isMcp(req) &&
        sendJson(
          res,
          {
            jsonrpc: '2.0',
            id: null,
            error: { code: -32_000, message: 'Invalid Host: x' },
          },
          403,
        ),
    },
    code: 'endpoint.host',
    hop: 'MCP endpoint',
    observed: /^status 403: Invalid Host: x$/,
    fix: /Allow this host name/,
  },
  {
    name: 'a proxy that cannot reach its upstream',
    bend: { server: (req, res) => isMcp(req) && sendText(res, 502, 'Bad Gateway') },
    code: 'endpoint.upstream',
    hop: 'MCP endpoint',
    fix: /upstream address/,
  },
  {
    name: 'a firewall',
    bend: { server: (req, res) => isMcp(req) && sendText(res, 403, 'denied') },
    code: 'endpoint.forbidden',
    observed: /: denied$/,
    hop: 'MCP endpoint',
    fix: /firewall/,
  },
  {
    name: 'only GET is allowed',
    bend: { server: (req, res) => isMcp(req) && sendText(res, 405) },
    code: 'endpoint.method',
    hop: 'MCP endpoint',
    fix: /allow POST/,
  },
  {
    name: 'a connection that is closed',
    bend: { server: (req) => isMcp(req) && !!req.socket.destroy() },
    code: 'endpoint.unreachable',
    hop: 'MCP endpoint',
    fix: /logs of the server/,
  },
  {
    name: 'an endless response',
    bend: {
      server(req, res) {
        if (!isMcp(req)) return false
        res.writeHead(200, { 'content-type': 'application/json' })
        res.end(Buffer.alloc(400_000, 'x'))
        return true
      },
    },
    code: 'endpoint.too-large',
    hop: 'MCP endpoint',
    fix: /correct the path/,
  },
  {
    name: 'a clock that is two hours ahead',
    bend: {
      server(_req, res) {
        res.setHeader('date', new Date(Date.now() + 7_200_000).toUTCString())
        return false
      },
    },
    code: 'clock.skew',
    hop: 'MCP endpoint',
    fix: /NTP/,
  },
  {
    name: 'a server that no browser may call',
    bend: {},
    options: () => ({ origin: 'https://app.example.com' }),
    code: 'cors.refused',
    hop: 'MCP endpoint',
    fix: /Allow the client’s origin/,
  },
  {
    name: 'a wildcard instead of Authorization',
    bend: {
      server(req, res) {
        res.setHeader('access-control-allow-origin', '*')
        res.setHeader('access-control-allow-headers', '*')
        return req.method === 'OPTIONS' && sendText(res, 204)
      },
    },
    options: () => ({ origin: 'https://app.example.com' }),
    code: 'cors.headers',
    hop: 'MCP endpoint',
    fix: /does not include authorization/,
  },
  {
    name: 'headers that scripts may not read',
    bend: {
      server(req, res) {
        res.setHeader('access-control-allow-origin', 'https://app.example.com')
        res.setHeader('access-control-allow-headers', 'authorization, *')
        return req.method === 'OPTIONS' && sendText(res, 204)
      },
    },
    options: () => ({ origin: 'https://app.example.com' }),
    result: 'warning',
    code: 'cors.exposed',
    hop: 'MCP endpoint',
    fix: /Expose both/,
  },
  {
    name: 'a 401 without a challenge',
    bend: { challenge: () => undefined },
    code: 'challenge.missing',
    hop: 'MCP endpoint',
    fix: /Send the header with every 401/,
  },
  {
    name: 'a challenge that a gateway renames',
    bend: {
      server: (req, res) =>
        isMcp(req) && !!res.writeHead(401, { 'x-amzn-remapped-www-authenticate': 'Bearer' }).end(),
    },
    code: 'challenge.renamed',
    hop: 'MCP endpoint',
    fix: /AWS API Gateway/,
  },
  {
    name: 'another login in front',
    bend: { challenge: () => 'Basic realm="staging"' },
    code: 'challenge.scheme',
    hop: 'MCP endpoint',
    fix: /exempt the server’s path/,
  },
  {
    name: 'a challenge that names no document',
    bend: { challenge: () => 'Bearer realm="x"' },
    result: 'warning',
    code: 'challenge.no-metadata',
    hop: 'MCP endpoint',
    fix: /Add the URL of the protected-resource document/,
  },
  {
    name: 'a login that is required only for tools/list',
    bend: {
      open: true,
      server(req, res) {
        if (!isMcp(req) || req.headers['mcp-session-id'] === undefined || req.method !== 'POST') return false
        res.writeHead(401, { 'www-authenticate': 'Bearer' }).end()
        return true
      },
    },
    result: 'warning',
    code: 'challenge.late',
    hop: 'MCP endpoint',
    fix: /protect initialize/,
  },
]

const metadata: readonly Case[] = [
  {
    name: 'no protected-resource document',
    bend: {
      challenge: () => 'Bearer',
      server: (req, res) => isMetadata(req) && sendText(res, 404),
    },
    code: 'resource-document.missing',
    hop: 'resource metadata',
    fix: /Serve \/\.well-known\/oauth-protected-resource/,
  },
  {
    name: 'a login in front of the well-known documents',
    bend: { server: (req, res) => isMetadata(req) && sendText(res, 401) },
    code: 'resource-document.login',
    hop: 'resource metadata',
    fix: /Exempt \/\.well-known\//,
  },
  {
    name: 'a catch-all page for the well-known documents',
    bend: { server: (req, res) => isMetadata(req) && sendText(res, 200, '<html>', 'text/html') },
    code: 'resource-document.html',
    hop: 'resource metadata',
    fix: /catch-all page/,
  },
  {
    name: 'a document that is not JSON',
    bend: { server: (req, res) => isMetadata(req) && sendText(res, 200, '{"resource":', 'application/json') },
    code: 'resource-document.malformed',
    hop: 'resource metadata',
    fix: /a JSON object with resource/,
  },
  {
    name: 'a challenge that names the wrong place',
    bend: { challenge: ({ origin }) => `Bearer resource_metadata="${origin}/elsewhere"` },
    code: 'resource-document.challenge-url',
    hop: 'resource metadata',
    fix: /Set resource_metadata to http:\/\/127\.0\.0\.1:\d+\/\.well-known\/oauth-protected-resource\/mcp/,
  },
  {
    name: 'no authorization server',
    bend: { resource: ({ resource }) => ({ resource }) },
    code: 'resource-document.no-servers',
    hop: 'resource metadata',
    fix: /authorization_servers/,
  },
  {
    name: 'a server that names itself by http behind TLS',
    bend: { resource: (document) => ({ ...document, resource: 'https://127.0.0.1/mcp' }) },
    code: 'resource.scheme',
    hop: 'resource metadata',
    fix: /resourceUrl/,
  },
  {
    name: 'a server that names itself by its internal host',
    bend: { resource: (document) => ({ ...document, resource: 'http://mcp.internal:8080/mcp' }) },
    code: 'resource.host',
    hop: 'resource metadata',
    fix: /internal host/,
  },
  {
    name: 'a document for another path',
    bend: { resource: (document, { origin }) => ({ ...document, resource: `${origin}/other` }) },
    code: 'resource.path',
    hop: 'resource metadata',
    fix: /including the path/,
  },
  {
    name: 'a document for the whole host',
    bend: { resource: (document, { origin }) => ({ ...document, resource: origin }) },
    result: 'warning',
    code: 'resource.parent',
    hop: 'resource metadata',
    fix: /Set resource to http:\/\/127\.0\.0\.1:\d+\/mcp/,
  },
]

const authorizationServer: readonly Case[] = [
  {
    name: 'an authorization server that is down',
    bend: { resource: (document) => ({ ...document, authorization_servers: ['http://127.0.0.1:1'] }) },
    code: 'issuer-host.connect',
    hop: 'authorization server',
    fix: /Start the authorization server/,
  },
  {
    name: 'no metadata of the authorization server',
    bend: { idp: (req, res) => isMetadata(req) && sendText(res, 404) },
    code: 'issuer-document.missing',
    hop: 'authorization server',
    fix: /oauth-authorization-server/,
  },
  {
    name: 'an issuer with a path that has no metadata',
    bend: {
      resource: (document, { issuer }) => ({ ...document, authorization_servers: [`${issuer}/tenant`] }),
      idp: (req, res) => (req.url ?? '').includes('/tenant') && sendText(res, 404),
    },
    code: 'issuer-document.root',
    hop: 'authorization server',
    fix: /Correct the path/,
  },
  {
    name: 'metadata of another issuer',
    bend: withMetadata((document) => ({ ...document, issuer: 'https://idp.example.com' })),
    code: 'issuer.mismatch',
    hop: 'authorization server',
    fix: /Write https:\/\/idp\.example\.com in authorization_servers/,
  },
  {
    name: 'an Okta server with a custom domain',
    bend: withMetadata((document) => ({ ...document, issuer: 'https://dev-1.okta.com/oauth2/default' })),
    code: 'issuer.mismatch',
    hop: 'authorization server',
    fix: /custom authorization server’s issuer, .*: the root of the domain is the org server/,
  },
  {
    name: 'an issuer with an extra slash',
    bend: withMetadata((document, { issuer }) => ({ ...document, issuer: `${issuer}/` })),
    result: 'warning',
    code: 'issuer.slash',
    hop: 'authorization server',
    fix: /byte for byte/,
  },
  {
    name: 'a provider whose clock is an hour behind',
    bend: {
      idp(_req, res) {
        res.setHeader('date', new Date(Date.now() - 3_600_000).toUTCString())
        return false
      },
    },
    code: 'issuer-clock.skew',
    hop: 'authorization server',
    fix: /new tokens/,
  },
  {
    name: 'no token endpoint',
    bend: without('token_endpoint'),
    code: 'endpoints.missing',
    hop: 'authorization server',
    fix: /authorization code flow/,
  },
  {
    name: 'a Keycloak realm whose host is not fixed',
    bend: {
      resource: (document, { issuer }) => ({ ...document, authorization_servers: [`${issuer}/realms/team`] }),
      idp(req, res) {
        if (!(req.url ?? '').includes('/.well-known/')) return false
        return sendJson(res, { issuer: 'http://keycloak:8080/realms/team' })
      },
    },
    code: 'issuer.mismatch',
    hop: 'authorization server',
    fix: /--hostname/,
  },
]

await runCases(t, 'endpoint', endpoint)
await runCases(t, 'metadata', metadata)
await runCases(t, 'authorization server', authorizationServer)
