/** Sessions that produce the symptoms in docs/guides/symptoms.md. */
import type { Session, Step } from './sessions.ts'

const page = 'docs/guides/symptoms.md'
const step = (command: string, more: Omit<Step, 'page' | 'command'> = {}): Step => ({
  page,
  command,
  ...more,
})
const fails = (command: string, code = 1): Step => step(command, { code })

/** A group with one server whose program does not exist, and a policy, a filter and a lock for the other server. */
const team = `
apiVersion: gatehouse.dev/v1beta1
kind: MCPGroup
metadata: { name: team }
---
apiVersion: gatehouse.dev/v1beta1
kind: MCPServer
metadata:
  name: demo
  annotations: { gatehouse.dev/local-command: npx -y @modelcontextprotocol/server-everything }
spec: { groupRef: { name: team }, image: docker.io/mcp/everything:latest, transport: stdio }
---
apiVersion: gatehouse.dev/v1beta1
kind: MCPServer
metadata:
  name: notes
  annotations: { gatehouse.dev/local-command: notes-server --stdio }
spec: { groupRef: { name: team }, image: docker.io/mcp/memory:latest, transport: stdio }
---
apiVersion: gatehouse.dev/v1beta1
kind: MCPToolLock
metadata: { name: demo }
spec:
  backendRef: { kind: MCPServer, name: demo }
  scheme: gatehouse.pin.v1
  onChanged: observe
  tools:
    - { name: echo, definition: { name: echo, inputSchema: { type: object } } }
    - { name: get-sum, definition: { name: get-sum, inputSchema: { type: object } } }
    - { name: get-tiny-image, definition: { name: get-tiny-image, inputSchema: { type: object } } }
---
apiVersion: gatehouse.dev/v1beta1
kind: VirtualMCPServer
metadata: { name: tools }
spec:
  groupRef: { name: team }
  incomingAuth:
    type: anonymous
    authzConfig:
      type: inline
      inline:
        policies:
          - permit(principal, action, resource);
          - forbid(principal, action == Action::"call_tool", resource in BackendTool::"demo/get-sum");
  config:
    operational: { failureHandling: { partialFailureMode: best_effort } }
    aggregation: { tools: [{ workload: demo, filter: [echo, get-sum, get-env] }] }
    pinning: { onNew: block }
`

/** An issuer, and three tokens that it signs: a valid one, and two with another audience or issuer. */
const issuer = `
import { createServer } from 'node:http'
import { writeFileSync } from 'node:fs'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
const issuer = 'http://127.0.0.1:9400'
const { publicKey, privateKey } = await generateKeyPair('ES256')
const keys = [{ ...(await exportJWK(publicKey)), kid: 'k1', alg: 'ES256', use: 'sig' }]
const metadata = {
  issuer,
  jwks_uri: issuer + '/jwks',
  authorization_endpoint: issuer + '/authorize',
  token_endpoint: issuer + '/token',
  registration_endpoint: issuer + '/register',
  response_types_supported: ['code'],
  code_challenge_methods_supported: ['S256'],
}
for (const [file, iss, aud] of [
  ['good.txt', issuer, 'notes'],
  ['audience.txt', issuer, 'https://api.example.com'],
  ['issuer.txt', 'http://localhost:9400', 'notes'],
]) {
  const token = new SignJWT({ sub: 'ada' }).setProtectedHeader({ alg: 'ES256', kid: 'k1', typ: 'at+jwt' })
  writeFileSync(file, await token.setIssuer(iss).setAudience(aud).setIssuedAt().setExpirationTime('1h').sign(privateKey))
}
createServer((req, res) => {
  res.setHeader('content-type', 'application/json')
  res.end(JSON.stringify(req.url.includes('.well-known') ? metadata : { keys }))
}).listen(9400, '127.0.0.1', () => console.log('ready'))
`

/** A server whose certificate no authority issued. */
const selfSigned = `
import { createServer } from 'node:https'
import { readFileSync } from 'node:fs'
createServer({ cert: readFileSync('cert.pem'), key: readFileSync('key.pem') }, (_req, res) => res.end())
  .listen(9443, '127.0.0.1', () => console.log('ready'))
`

const redis = `
name: tools
groupRef: team
incomingAuth: { type: anonymous }
outgoingAuth: { source: inline }
backends: [{ name: demo, url: "http://127.0.0.1:9000/mcp", transport: streamable-http }]
sessionStorage: { provider: redis, address: "127.0.0.1:6379" }
`

const curlJson = "-H 'Content-Type: application/json' -d"

/** Sessions that need no cluster. */
export const symptomSessions: readonly Session[] = [
  {
    name: 'a port in use',
    servers: [4483],
    steps: [fails('gatehouse dev -f manifests/examples/quickstart', 2)],
  },
  {
    name: 'a client without a server',
    files: { 'home/.cursor/mcp.json': '{"mcpServers":{}}' },
    steps: [step('gatehouse client add cursor')],
  },
  {
    name: 'missing and denied tools',
    files: { 'team.yaml': team },
    steps: [
      step('gatehouse dev -f team.yaml', { ready: /^tools: backends: demo/m }),
      step('gatehouse tools list tools'),
      fails('gatehouse doctor tools'),
      fails('gatehouse tools call tools demo_ecko message=hello', 2),
      fails('gatehouse explain tools --tool demo_get-tiny-image'),
      fails('gatehouse explain tools --tool demo_get-sum'),
      fails('gatehouse explain tools --tool demo_get-env'),
      step(
        `curl -s -H 'Mcp-Session-Id: 6e1f' -H 'Accept: application/json, text/event-stream' ${curlJson} '{"jsonrpc":"2.0","id":1,"method":"tools/list"}' http://127.0.0.1:4483/mcp`,
      ),
    ],
  },
  {
    name: 'logins, certificates, addresses',
    files: { 'issuer.mjs': issuer, 'self-signed.mjs': selfSigned },
    servers: [9000],
    peers: [
      { command: 'node issuer.mjs', ready: /ready/ },
      {
        command:
          'openssl req -x509 -newkey rsa:2048 -nodes -days 30 -subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1 -keyout key.pem -out cert.pem && exec node self-signed.mjs',
        ready: /ready/,
      },
    ],
    steps: [
      step(
        'gatehouse proxy --target-uri http://127.0.0.1:9000 --port 8080 --oidc-issuer http://127.0.0.1:9400 --oidc-audience notes notes',
        { ready: /on port/ },
      ),
      fails('gatehouse tools list http://127.0.0.1:8080/mcp', 3),
      fails('gatehouse doctor http://127.0.0.1:8080/mcp --token-file audience.txt'),
      fails('gatehouse doctor http://127.0.0.1:8080/mcp --token-file issuer.txt'),
      fails('gatehouse doctor https://127.0.0.1:9443/mcp'),
      fails('gatehouse doctor http://127.0.0.1:9000/'),
      step(`curl -s -H 'Origin: https://app.example.com' ${curlJson} '{}' http://127.0.0.1:8080/mcp`),
      step(`curl -s -H 'Host: mcp.example.com' ${curlJson} '{}' http://127.0.0.1:8080/mcp`),
      step(
        'gatehouse proxy --target-uri http://127.0.0.1:9000 --port 8081 --oidc-issuer http://localhost:9400 --oidc-audience notes notes',
        { ready: /on port/ },
      ),
      step('curl -s -H "Authorization: Bearer $(cat good.txt)" http://127.0.0.1:8081/mcp'),
    ],
  },
  {
    name: 'Redis is down',
    files: { 'redis.yaml': redis },
    servers: [9000],
    steps: [
      step('gatehouse vmcp serve --config redis.yaml --port 4490', {
        ready: /session storage is unreachable/,
      }),
      step('gatehouse doctor --gateway http://127.0.0.1:4490'),
      fails('gatehouse doctor --redis redis://127.0.0.1:6379'),
    ],
  },
]

/** A session on an API server without an installation. */
export const noDefinitions: Session = {
  name: 'definitions are missing',
  steps: [fails('kubectl apply -k manifests/examples/quickstart')],
}

/** A session on an API server with the definitions, but without Metacontroller. */
export const noMetacontroller: Session = {
  name: 'Metacontroller is missing',
  steps: [fails('gatehouse cluster why vmcp/quickstart'), fails('gatehouse doctor --cluster')],
}

/** A session on an API server with the admission webhook, but without the hooks. */
export const noHooks: Session = {
  name: 'the hooks are missing',
  steps: [fails('kubectl apply -k manifests/examples/oidc')],
}
