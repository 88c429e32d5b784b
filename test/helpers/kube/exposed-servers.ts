/** A virtual server and a server behind it with all options for exposure, as their owners keep them in a repository. */
import { existsSync, readFileSync } from 'node:fs'
import { imageReference } from '../../../schemas/index.ts'
import { missingRedis } from '../redis.ts'
import { type Image, imageOfProgram } from './node/images.ts'
import { imageFolder, quickstartImages } from './node/installation.ts'

export const namespace = 'team'

/** Both servers with their Deployments. The Deployment's name is also the name of the other children. */
export const subjects = [
  {
    key: 'MCPServer/everything',
    object: 'mcpserver/everything',
    deployment: 'mcp-everything-proxy',
    host: 'everything.example.com',
  },
  {
    key: 'VirtualMCPServer/tools',
    object: 'vmcp/tools',
    deployment: 'vmcp-tools',
    host: 'tools.example.com',
  },
] as const

const runtimeImage = imageReference('gatehouse', '0.1.0')
/** The next version, which exists, and a version that does not exist. */
export const nextImage = imageReference('gatehouse', '0.1.1')
export const absentImage = imageReference('gatehouse', '0.1.2')
const redisProgram = '/usr/bin/redis-server'
const redisImage = 'docker.io/library/redis:8'

/** Reason that there is no session store, for `{ skip }`; otherwise false. */
export function storeMissing(): string | false {
  return (
    missingRedis || (existsSync(redisProgram) ? false : `no ${redisProgram} for the pod with the sessions`)
  )
}

export function exposedImages(folder: string): ReadonlyMap<string, Image> {
  const all = new Map(quickstartImages(folder))
  const runtime = all.get(runtimeImage)
  if (runtime) all.set(nextImage, runtime)
  return all.set(redisImage, imageOfProgram(imageFolder(folder, 'redis'), '/redis-server', redisProgram))
}

const labels = { app: 'redis' }
/** Session store of the pods. */
export const redis = [
  {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'redis', namespace },
    spec: {
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: {
          containers: [
            {
              name: 'redis',
              image: redisImage,
              args: ['--bind', '0.0.0.0', '--protected-mode', 'no', '--save', '', '--dir', '/tmp'],
              readinessProbe: { tcpSocket: { port: 6379 } },
            },
          ],
        },
      },
    },
  },
  {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'redis', namespace },
    spec: { selector: labels, ports: [{ port: 6379 }] },
  },
]

export interface Change {
  /** Image of our own containers. */
  readonly image?: string
  /** Secret with the certificate of the virtual server. */
  readonly secretName?: string
  /** Image of the MCP server. */
  readonly server?: string
}

const own = (kind: string, name: string, spec: object) => ({
  apiVersion: 'gatehouse.dev/v1beta1',
  kind,
  metadata: { name, namespace },
  spec,
})
const podOf = (name: string, image: string | undefined) =>
  image === undefined ? {} : { podTemplateSpec: { spec: { containers: [{ name, image }] } } }

export function exposedServers(change: Change = {}): readonly object[] {
  const { image, secretName = 'inside-tls', server = 'docker.io/mcp/everything:latest' } = change
  const sessionStorage = { provider: 'redis', address: `redis.${namespace}.svc.cluster.local:6379` }
  const gateway = { name: 'edge' }
  return [
    own('MCPGroup', 'tools', {}),
    own('MCPServer', 'everything', {
      groupRef: { name: 'tools' },
      image: server,
      transport: 'streamable-http',
      mcpPort: 3001,
      args: ['streamableHttp'],
      podTemplateSpec: { spec: { containers: [{ name: 'mcp', command: ['node', '/app/dist/index.js'] }] } },
      resourceOverrides: { proxyDeployment: podOf('gatehouse', image) },
      replicas: 2,
      sessionStorage: { ...sessionStorage, db: 1 },
      tls: { secretName: 'inside-tls' },
      exposure: { hostname: subjects[0].host, gateway },
    }),
    own('VirtualMCPServer', 'tools', {
      groupRef: { name: 'tools' },
      incomingAuth: { type: 'anonymous' },
      ...podOf('vmcp', image),
      autoscaling: { minReplicas: 2, maxReplicas: 4 },
      sessionStorage: { ...sessionStorage, db: 2 },
      tls: { secretName },
      exposure: { hostname: subjects[1].host, gateway },
    }),
  ]
}

/** Objects that the operators of the Gateway have created. */
export const edge = [
  {
    apiVersion: 'gateway.networking.k8s.io/v1',
    kind: 'GatewayClass',
    metadata: { name: 'test' },
    spec: { controllerName: 'gatehouse.dev/test-gateway' },
  },
  {
    apiVersion: 'gateway.networking.k8s.io/v1',
    kind: 'Gateway',
    metadata: { name: 'edge', namespace },
    spec: {
      gatewayClassName: 'test',
      listeners: [
        {
          name: 'https',
          port: 443,
          protocol: 'HTTPS',
          tls: { certificateRefs: [{ name: 'edge-tls' }] },
        },
      ],
    },
  },
]

/** The BackendTLSPolicy of the guide, for each server. */
export function backendPolicies(): string {
  const page = readFileSync('docs/guides/tls.md', 'utf8')
  const [, policy = ''] = /```yaml\n([^`]*kind: BackendTLSPolicy[^`]*)```/.exec(page) ?? []
  const [everything, tools] = subjects
  const other = policy
    .replaceAll(tools.deployment, everything.deployment)
    .replace('{ name: tools,', '{ name: everything,')
  return `${policy}---\n${other}`
}

export function tlsSecret(name: string, { cert, key }: { cert: string; key: string }, ca: string): object {
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name, namespace },
    type: 'kubernetes.io/tls',
    stringData: { 'tls.crt': cert, 'tls.key': key, 'ca.crt': ca },
  }
}
