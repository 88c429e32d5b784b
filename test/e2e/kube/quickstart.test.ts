/**
 * Runs the quickstart on a cluster as its page describes: install, apply, connect, delete. Everything is real except
 * the container runtime: API server, controller manager, Metacontroller with its least rights as the pod of our
 * manifests, the hooks as two pods behind their Service, the certificate job, and the pods that the hooks render.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import t, { type Test } from 'tap'
import type { KubeApiserver } from '../../helpers/kube/apiserver.ts'
import { insideNamespaces, isInsideNamespaces, startCluster } from '../../helpers/kube/node/index.ts'
import { kinds } from '../../../schemas/index.ts'
import { manifestsFolder } from '../../helpers/hooks/manifests.ts'
import {
  applyInstallation,
  installationMissing,
  isInstalled,
  quickstartImages,
  systemNamespace as system,
  until,
} from '../../helpers/kube/node/installation.ts'

const quickstart = join(manifestsFolder, 'examples/quickstart')
const missing = installationMissing()

const resources =
  'deployments,replicasets,statefulsets,controllerrevisions,pods,services,endpointslices,configmaps,secrets,serviceaccounts,roles,rolebindings,networkpolicies,poddisruptionbudgets,horizontalpodautoscalers,jobs,cronjobs,persistentvolumeclaims,' +
  kinds.map(({ plural }) => `${plural}.gatehouse.dev`).join(',')

const deprecated = {
  apiVersion: 'gatehouse.dev/v1beta1',
  kind: 'VirtualMCPServer',
  metadata: { name: 'old' },
  spec: {
    groupRef: { name: 'nobody' },
    incomingAuth: {
      type: 'oidc',
      oidcConfigRef: { name: 'login', audience: 'https://old.example.com/mcp' },
      authzConfig: {
        type: 'inline',
        inline: { policies: ['permit(principal, action, resource);'], primaryUpstreamProvider: 'corp' },
      },
    },
    authServerConfig: {
      issuer: 'https://login.example.com',
      upstreamProviders: [
        {
          name: 'corp',
          type: 'oidc',
          oidcConfig: { issuerUrl: 'https://corp.example.com', clientId: 'old' },
        },
      ],
    },
  },
}

/** Objects that an installation creates outside of namespaces, and in its own namespace. */
const clusterWide =
  'namespaces,clusterroles,clusterrolebindings,validatingwebhookconfigurations,compositecontrollers,deployments,jobs,cronjobs,services,secrets,pods'

interface VirtualServer {
  readonly status?: {
    readonly phase?: string
    readonly url?: string
    readonly backendCount?: number
    readonly discoveredBackends?: readonly {
      readonly name: string
      readonly status: string
      readonly lastHealthCheck?: string
    }[]
  }
}

function objectsIn(kube: KubeApiserver, namespace: string): readonly string[] {
  return kube
    .must(['get', resources, '-n', namespace, '-o', 'name', '--ignore-not-found'])
    .split('\n')
    .filter(Boolean)
}

async function scenario(t: Test): Promise<void> {
  t.setTimeout(600_000)
  const cluster = await startCluster(t, quickstartImages)
  const { kube, node } = cluster
  const available = (name: string) => isInstalled(kube, name)

  await t.test(
    'kubectl apply -k manifests/overlays/everything: starts the certificate job, two hooks pods, Metacontroller',
    async (t) => {
      applyInstallation(kube)
      await until('the hooks', () => available('gatehouse-hooks'), cluster)
      await until('Metacontroller', () => available('gatehouse-metacontroller'), cluster)
      const job = () => kube.get(['job', 'gatehouse-certificates-0-1-0', '-n', system]).status
      await until('the certificate job', () => job().succeeded === 1, cluster)
      t.notOk(job().failed, 'at the first attempt')
    },
  )
  if (!t.passing()) throw new Error(await node.output())

  const namespace = 'default'
  const before = objectsIn(kube, namespace)
  const running = await node.pods()
  const vmcp = (): VirtualServer => kube.get(['vmcp', 'quickstart'])

  await t.test('kubectl apply -k manifests/examples/quickstart: reaches phase Ready', async (t) => {
    kube.must(['apply', '-k', quickstart])
    await until('phase Ready', () => vmcp().status?.phase === 'Ready', cluster)
    const checked = () =>
      vmcp().status?.discoveredBackends?.every(
        ({ status, lastHealthCheck }) => status === 'ready' && lastHealthCheck !== undefined,
      ) === true
    await until('the report of the pod', checked, cluster)
    const { status } = vmcp()
    t.strictSame(
      status?.discoveredBackends?.map(({ name }) => name),
      ['everything', 'files', 'memory'],
    )
    t.equal(status?.backendCount, 3)
    t.equal(status?.url, 'http://vmcp-quickstart.default.svc.cluster.local:4483/mcp')
    const report = kube.get(['configmap', 'quickstart-vmcp-status'])
    const [pod] = kube.get(['pods', '-l', 'app=virtualmcpserver']).items
    t.strictSame(
      Object.keys(report.data),
      [`${pod.metadata.name}.json`],
      'one report, under the name of its pod',
    )
    const listed = kube.kubectl(['get', 'gatehouse'])
    t.match(listed.stdout, 'virtualmcpserver.gatehouse.dev/quickstart', listed.stderr)
  })
  if (!t.passing()) throw new Error(await node.output())

  await t.test('a client lists the tools of all servers at status.url and calls one of each', async (t) => {
    const client = new Client({ name: 'kube-quickstart', version: '1' })
    await client.connect(new StreamableHTTPClientTransport(new URL(vmcp().status?.url ?? '')))
    const names = (await client.listTools()).tools.map(({ name }) => name)
    for (const prefix of ['everything_', 'files_', 'memory_']) {
      t.ok(
        names.some((name) => name.startsWith(prefix)),
        prefix,
      )
    }
    const call = async (name: string, args: Record<string, unknown>) =>
      JSON.stringify(await client.callTool({ name, arguments: args }))
    t.match(await call('everything_echo', { message: 'hello' }), 'Echo: hello')
    t.match(await call('files_list_allowed_directories', {}), '/tmp')
    const entities = [{ name: 'gate', entityType: 'door', observations: ['open'] }]
    t.match(await call('memory_create_entities', { entities }), 'gate')
    await client.close()
  })

  await t.test('the status shows a server that is scaled to zero, and its return', async (t) => {
    const often = { healthCheckInterval: '1s', healthCheckTimeout: '500ms', statusReportingInterval: '1s' }
    const patch = { spec: { config: { operational: { failureHandling: often } } } }
    kube.must(['patch', 'vmcp', 'quickstart', '--type=merge', '-p', JSON.stringify(patch)])
    kube.must(['scale', 'deployment/mcp-everything-proxy', '--replicas=0'])
    await until('phase Degraded', () => vmcp().status?.phase === 'Degraded', cluster)
    t.equal(vmcp().status?.backendCount, 2)
    kube.must(['scale', 'deployment/mcp-everything-proxy', '--replicas=1'])
    await until('phase Ready again', () => vmcp().status?.phase === 'Ready', cluster)
    t.equal(vmcp().status?.backendCount, 3)
  })

  await t.test('kubectl delete -k manifests/examples/quickstart: leaves no objects behind', async (t) => {
    const deleted = kube.kubectl(['delete', '-k', quickstart])
    t.equal(deleted.code, 0, deleted.stderr)
    await until('an end of everything', () => objectsIn(kube, namespace).length === before.length, cluster)
    t.strictSame(objectsIn(kube, namespace), before)
    t.strictSame(await node.pods(), running, 'no container')
    const left = commandLines().filter((line) =>
      /vmcp serve|gatehouse\.js proxy|\/gatehouse\/ld\.so|\/app\/dist/.test(line),
    )
    t.strictSame(left, [], 'no process')
  })

  await t.test('a deprecated field causes one Event, however often it is synced', async (t) => {
    kube.must(['create', 'namespace', 'events'])
    kube.must(['apply', '-n', 'events', '-f', '-'], JSON.stringify(deprecated))
    const events = (): readonly { message: string; involvedObject: { name: string } }[] =>
      kube
        .get(['events', '-n', 'events'])
        .items.filter(({ reason }: { reason: string }) => reason === 'AuthzPrimaryUpstreamProviderDeprecated')
    await until('the Event', () => events().length > 0, cluster)
    kube.must(['label', 'vmcp', 'old', '-n', 'events', 'example.com/look=again'])
    await until('a sync', () => kube.get(['vmcp', 'old', '-n', 'events']).status?.phase === 'Failed', cluster)
    t.equal(events().length, 1)
    t.match(events()[0], { type: 'Warning', involvedObject: { kind: 'VirtualMCPServer', name: 'old' } })
    kube.must(['delete', 'vmcp', 'old', '-n', 'events'])
  })

  await t.test('removing the installation as documented leaves no objects behind', async (t) => {
    for (const _ of [1, 2]) kube.kubectl(['delete', 'gatehouse', '--all', '-A'])
    kube.must(['delete', '-k', join(manifestsFolder, 'overlays/everything')])
    const left = () =>
      kube.must([
        'get',
        clusterWide,
        '-A',
        '-o',
        'name',
        '--ignore-not-found',
        '-l',
        'app.kubernetes.io/part-of=gatehouse',
      ])
    await until('an end of everything', () => left() === '', cluster)
    const { code } = kube.kubectl(['get', 'namespace', system])
    t.equal(code, 1, 'the namespace is gone')
    t.notMatch(kube.must(['get', 'crds', '-o', 'name']), 'gatehouse.dev')
    t.strictSame(await node.pods(), [], 'no container')
  })
}

/** Command lines of every process in the namespace of this test. */
function commandLines(): readonly string[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        return [readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')]
      } catch {
        return []
      }
    })
}

t.setTimeout(600_000)

if (missing) t.test('the quickstart on a cluster', { skip: missing }, () => {})
else if (isInsideNamespaces()) await t.test('the quickstart on a cluster', scenario)
else await insideNamespaces(t, import.meta.filename)
