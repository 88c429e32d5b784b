/**
 * Two `gatehouse vmcp serve` processes with the embedded authorization server on one Redis, behind one address. Users
 * sign in at a real OpenID provider. A second issuer plays the Kubernetes API server.
 */
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer, request } from 'node:http'
import { join } from 'node:path'
import type { Test } from 'tap'
import { freePort } from '../gatehouse.ts'
import { makeCertificates, startRedis } from '../redis.ts'
import { makeKey, newSecret, type TestKey } from './declared-client.ts'
import {
  authServerFile,
  type Backend,
  type Gateway,
  makeKeys,
  oidcOf,
  startBackend,
  startFormProvider,
  startGateway,
} from './hosted.ts'
import { startTokenIssuer, type TokenIssuer } from './token-issuer.ts'

export interface Replica {
  readonly origin: string
  readonly gateway: Gateway
  /** Lines of the audit log. */
  lines(): readonly AuditLine[]
}

export interface AuditLine {
  readonly type: string
  readonly outcome: string
  readonly subjects: Readonly<Record<string, string>>
  readonly delegation?: { readonly chain: readonly { readonly sub: string }[] }
  readonly target: { readonly name?: string }
  readonly metadata: { readonly extra: { readonly reason?: string } }
}

export interface Replicas {
  readonly origin: string
  readonly first: Replica
  readonly second: Replica
  readonly backend: Backend
  readonly cluster: TokenIssuer
  readonly secret: string
  readonly key: TestKey
  /** Writes the clients of the authorization server's file. */
  publish(clientIds: readonly string[]): void
  /** Alternates requests for `origin` between these replicas. */
  route(replicas: readonly Replica[]): void
}

/** Listens at one address and forwards requests to the targets in turn. */
async function startFront(t: Test): Promise<{ origin: string; targets: string[] }> {
  const targets: string[] = []
  let turn = 0
  const server = createServer((req, res) => {
    const target = new URL(req.url ?? '/', targets[turn++ % targets.length])
    const { method = 'GET', headers } = req
    const forwarded = request(target, { method, headers, agent: false }, (response) => {
      res.writeHead(response.statusCode ?? 502, response.headers)
      response.pipe(res)
      response.once('error', () => res.destroy())
    })
    forwarded.once('error', () => res.destroy())
    res.once('close', () => forwarded.destroy())
    req.pipe(forwarded)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.close()
    server.closeAllConnections()
  })
  const address = server.address()
  return { origin: `http://127.0.0.1:${typeof address === 'object' && address ? address.port : 0}`, targets }
}

interface ReplicaOptions {
  /** Receives the issuers of users and of ServiceAccounts. */
  readonly policies: (origin: string, cluster: string) => readonly string[]
  /** Clients that may exchange the tokens of users. */
  readonly delegates?: readonly string[]
  /** Additional declared clients. `publish` reads them again. */
  readonly clients?: () => readonly object[]
  /** Additional settings of the authorization server. `publish` reads them again. */
  readonly more?: () => Readonly<Record<string, unknown>>
}

/** Starts both replicas with the declared clients `ci` (secret) and `signer` (key). */
export async function startReplicas(
  t: Test,
  tools: readonly string[],
  { policies, delegates = [], clients: furtherClients = () => [], more = () => ({}) }: ReplicaOptions,
): Promise<Replicas> {
  const front = await startFront(t)
  const { origin } = front
  const certificates = makeCertificates()
  t.teardown(() => certificates.remove())
  const [redis, cluster, backend, key, provider] = await Promise.all([
    startRedis({ auth: { password: 'redis-password' } }),
    startTokenIssuer(),
    startBackend(t, undefined, tools),
    makeKey(),
    startFormProvider(t, origin, certificates),
  ])
  t.teardown(() => Promise.all([redis.stop(), cluster.close()]))
  const dir = t.testdir({})
  const secret = newSecret()
  writeFileSync(join(dir, 'secret'), secret)
  const credentials: Readonly<Record<string, object>> = {
    ci: { clientSecretFiles: [join(dir, 'secret')] },
    signer: { jwks: { keys: [key.jwk] } },
  }
  const scopes = [...oidcOf(origin).scopes, ...(delegates.length > 0 ? ['tools'] : [])]
  const exchange =
    delegates.length > 0 ? { inboundGrants: { tokenExchange: {} }, scopesSupported: scopes } : {}
  const dpop = { mode: 'optional' }
  const keys = makeKeys(dir)
  const publish = (clientIds: readonly string[]): void => {
    const clients = clientIds.map((clientId) => ({
      clientId,
      scopes: ['tools'],
      ...credentials[clientId],
      ...(delegates.includes(clientId) ? { subjectClients: ['*'] } : {}),
    }))
    const storage = { type: 'redis', redis: { addr: redis.addr, passwordEnv: 'REDIS_PASSWORD' } }
    const file = authServerFile({
      origin,
      providers: { corp: provider },
      keys,
      more: { ...more(), clients: [...clients, ...furtherClients()], storage, dpop, ...exchange },
    })
    writeFileSync(join(dir, 'authserver-config.yaml'), file)
  }
  publish(['ci', 'signer'])

  const { issuer, audience, jwksUrl } = cluster
  async function startReplica(number: number): Promise<Replica> {
    const [config, logFile] = [join(dir, `vmcp-${number}.yaml`), join(dir, `audit-${number}.log`)]
    const port = await freePort()
    writeFileSync(
      config,
      JSON.stringify({
        name: 'team',
        groupRef: 'team',
        incomingAuth: {
          type: 'oidc',
          oidc: { ...oidcOf(origin), scopes },
          issuers: [{ issuer, audience, jwksUrl, jwksAllowPrivateIp: true }],
          dpop,
          authz: { type: 'cedar', policies: policies(origin, issuer) },
        },
        outgoingAuth: { source: 'inline' },
        aggregation: {},
        sessionStorage: { provider: 'redis', address: redis.addr },
        audit: { enabled: true, logFile },
        backends: [{ name: 'who', url: backend.url, transport: 'streamable-http' }],
      }),
    )
    const gateway = await startGateway(t, {
      dir,
      args: ['vmcp', 'serve', '-c', config, '--port', String(port)],
      ready: /virtual MCP server listening/,
      env: {
        REDIS_PASSWORD: 'redis-password',
        GATEHOUSE_SESSION_REDIS_PASSWORD: 'redis-password',
        NODE_EXTRA_CA_CERTS: certificates.caFile,
      },
    })
    return {
      origin: `http://127.0.0.1:${port}`,
      gateway,
      lines: () =>
        readFileSync(logFile, 'utf8')
          .split('\n')
          .slice(0, -1)
          .map((line) => JSON.parse(line) as AuditLine),
    }
  }
  const [first, second] = await Promise.all([startReplica(1), startReplica(2)])
  const route = (replicas: readonly Replica[]): void =>
    void front.targets.splice(0, front.targets.length, ...replicas.map((replica) => replica.origin))
  route([first, second])
  return { origin, first, second, backend, cluster, secret, key, publish, route }
}
