/**
 * Runs servers with TLS on their own port and in front of it, an HTTPRoute at a Gateway, several pods with a disruption
 * budget, and an autoscaler, on a cluster that `helm install` alone has set up. Rollouts then fail and are repaired. No
 * tool that waits for an object (kubectl, kstatus as in Flux, the health check for Argo CD) may treat it as done too
 * early.
 *
 * Real: Helm, API server, controller manager, Metacontroller, the definitions of the Gateway API, kubectl, Redis, the
 * pods. The Gateway and the node are test helpers.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import t, { type Test } from 'tap'
import { Agent, fetch as undiciFetch } from 'undici'
import { healthOf, luaMissing } from '../../helpers/hooks/argo-health.ts'
import { makeAuthority } from '../../helpers/certificates.ts'
import { isWaitOver, kstatusOf } from '../../helpers/hooks/kstatus.ts'
import { manifestsFolder } from '../../helpers/hooks/manifests.ts'
import type { KubeApiserver } from '../../helpers/kube/apiserver.ts'
import { findGatewayDefinitions, gatewayDefinitionsMissing } from '../../helpers/kube/assets.ts'
import {
  absentImage,
  backendPolicies,
  edge,
  exposedImages,
  exposedServers,
  namespace,
  nextImage,
  redis,
  storeMissing,
  subjects,
  tlsSecret,
} from '../../helpers/kube/exposed-servers.ts'
import { answerRoute, startGateway } from '../../helpers/kube/gateway.ts'
import { helm, helmMissing } from '../../helpers/kube/helm.ts'
import { KubeApi } from '../../helpers/kube/node/api.ts'
import { insideNamespaces, isInsideNamespaces, startCluster } from '../../helpers/kube/node/index.ts'
import {
  installationMissing,
  systemNamespace as system,
  until as untilOn,
} from '../../helpers/kube/node/installation.ts'
import { Recorder, type Version } from '../../helpers/kube/recorder.ts'
import { untyped } from '../../helpers/untyped.ts'

const missing =
  helmMissing() ||
  installationMissing() ||
  (findGatewayDefinitions() === undefined && gatewayDefinitionsMissing) ||
  storeMissing() ||
  luaMissing

/** Returns the verdict of each tool on each version. */
function verdictsOn(versions: readonly Version[]) {
  const argo = versions.length === 0 ? [] : healthOf(versions)
  return versions.map((version, index) => ({
    kubectl: isWaitOver(version),
    kstatus: kstatusOf(version),
    argo: argo[index] ?? '',
  }))
}
const done = { kubectl: true, kstatus: 'Current', argo: 'Healthy' }
const failed = { kubectl: false, kstatus: 'Failed', argo: 'Degraded' }

/** True when all pods have the current template and serve, according to the Deployment's status. */
function isComplete(deployment: Version | undefined): boolean {
  if (!deployment) return false
  const { metadata, spec, status } = untyped(deployment)
  const counts = [status.updatedReplicas, status.availableReplicas, status.replicas]
  return status.observedGeneration === metadata.generation && counts.every((count) => count === spec.replicas)
}

/**
 * Returns the serial number of the served certificate to a client that trusts only `ca`. Rejects when it is not
 * trusted.
 */
async function servedSerial(url: string, ca: string): Promise<string> {
  const { hostname, port } = new URL(url)
  const socket = connect({ host: hostname, port: Number(port), servername: hostname, ca })
  try {
    await once(socket, 'secureConnect')
    return socket.getPeerCertificate().serialNumber
  } finally {
    socket.destroy()
  }
}

/** Starts `kubectl wait` in the background. */
function waitMeanwhile(t: Pick<Test, 'teardown'>, kube: KubeApiserver, object: string): ChildProcess {
  const args = ['wait', object, '-n', namespace, '--for=condition=Ready', '--timeout=240s']
  const child = spawn('kubectl', args, {
    stdio: 'ignore',
    env: { ...process.env, KUBECONFIG: kube.kubeconfig },
  })
  t.teardown(() => child.kill('SIGKILL'))
  return child
}

/** Connects as a client outside of the cluster that trusts the Gateway's authority, calls a tool, and closes. */
async function call(agent: Agent, url: string, tool: string): Promise<string> {
  const client = new Client({ name: 'outside', version: '1' })
  const fetch = (input: string | URL, init?: RequestInit) =>
    undiciFetch(input, untyped({ ...init, dispatcher: agent })) as unknown as Promise<Response>
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { fetch }))
  const result = await client.callTool({ name: tool, arguments: { message: 'hello' } })
  await client.close()
  return JSON.stringify(result)
}

async function scenario(t: Test): Promise<void> {
  t.setTimeout(600_000)
  const cluster = await startCluster(t, exposedImages)
  const { kube, node } = cluster
  const until = (what: string, found: () => boolean) => untilOn(what, found, cluster)
  const api = new KubeApi(kube)
  t.teardown(() => api.close())
  const [inside, outside] = [await makeAuthority(), await makeAuthority()]
  const certificate = () => inside.leaf({ names: [`*.${namespace}.svc.cluster.local`] })
  await startGateway(t, api, await outside.leaf({ names: subjects.map(({ host }) => host) }))
  const agent = new Agent({
    connect: {
      ca: outside.ca,
      lookup: (_host, _options, callback) => callback(null, [{ address: '127.0.0.1', family: 4 }]),
    },
  })
  t.teardown(() => agent.destroy())

  const get = (object: string) => untyped(kube.get([object, '-n', namespace]))
  const conditionOf = (object: string, type: string) =>
    get(object).status?.conditions?.find((one: { type: string }) => one.type === type)
  const apply = (...items: readonly object[]) =>
    kube.must(['apply', '-f', '-'], JSON.stringify({ apiVersion: 'v1', kind: 'List', items }))
  const kubectlWait = (object: string, seconds: number) =>
    kube.kubectl(['wait', object, '-n', namespace, '--for=condition=Ready', `--timeout=${seconds}s`])
  const bothServe = async (t: Test, when: string) => {
    const { externalUrl: tools } = get('vmcp/tools').status
    t.match(await call(agent, tools, 'everything_echo'), 'Echo: hello', `tools ${when}`)
    const { externalUrl: everything } = get('mcpserver/everything').status
    t.match(await call(agent, everything, 'echo'), 'Echo: hello', `everything ${when}`)
  }

  await t.test('helm install alone, on a cluster with the Gateway API', async (t) => {
    kube.must(['apply', '--server-side', '-f', findGatewayDefinitions() ?? ''])
    kube.must(['wait', '--for=condition=Established', 'crd', '--all', '--timeout=60s'])
    const args = ['install', 'gatehouse', join(manifestsFolder, 'chart'), '-n', system, '--create-namespace']
    const { code, stderr } = helm(
      [...args, '--wait', '--timeout', '5m', '--set', 'integrations.gatewayAPI=true'],
      kube,
    )
    t.equal(code, 0, stderr || (await node.output()))
  })
  if (!t.passing()) throw new Error(await node.output())

  kube.must(['create', 'namespace', namespace])
  const recorder = await Recorder.start(
    t,
    api,
    [
      'gatehouse.dev/v1beta1 mcpservers',
      'gatehouse.dev/v1beta1 virtualmcpservers',
      'apps/v1 deployments',
    ].map((resource) => `/apis/${resource.replace(' ', `/namespaces/${namespace}/`)}`),
  )
  const verdict = (key: string) => verdictsOn(recorder.versions(key).slice(-1))[0]
  /** Returns the versions since the spec had this generation. */
  const since = (key: string, generation: number) =>
    recorder.versions(key).filter(({ metadata }) => (metadata.generation ?? 0) >= generation)
  const nobodyTakesItForDone = (t: Test, key: string, generation: number) => {
    const versions = since(key, generation)
    t.ok(versions.length > 0, `${key}: ${versions.length} versions of generation ${generation} were seen`)
    for (const { kubectl, kstatus, argo } of verdictsOn(versions)) {
      t.notOk(kubectl || kstatus === 'Current' || argo === 'Healthy', `${key}: ${kubectl} ${kstatus} ${argo}`)
    }
  }
  /** Checks every version that a tool treated as done: all pods had its template and served. */
  const doneIsTrue = async (t: Test, generations: readonly number[], image?: string) => {
    for (const [index, { key, deployment }] of subjects.entries()) {
      await until(`${key} done`, () => verdict(key)?.kstatus === 'Current')
      t.strictSame(verdict(key), done, `${key}: all agree`)
      const versions = since(key, generations[index] ?? 0)
      const verdicts = verdictsOn(versions)
      for (const name of ['kubectl', 'kstatus', 'argo'] as const) {
        const first = versions[verdicts.findIndex((one) => one[name] === done[name])]
        const workload = first && recorder.at(`Deployment/${deployment}`, first)
        t.ok(isComplete(workload), `${key}: ${name} ${JSON.stringify(workload?.['status'])}`)
        if (image !== undefined)
          t.equal(untyped(workload)?.spec.template.spec.containers[0].image, image, `${key}: ${name}`)
      }
    }
  }
  const generationsNow = () => subjects.map(({ object }) => Number(get(object).metadata.generation))

  await t.test('two servers with all options become Ready, but not before their pods serve', async (t) => {
    apply(...redis, tlsSecret('inside-tls', await certificate(), inside.ca), ...edge, ...exposedServers())
    for (const { object } of subjects) {
      const { code, stderr } = kubectlWait(object, 120)
      t.equal(code, 0, stderr + (code === 0 ? '' : await node.output()))
    }
    await doneIsTrue(t, [1, 1])
    for (const { object, deployment } of subjects) {
      t.equal(get(`deployment/${deployment}`).status.availableReplicas, 2, `${deployment}: pods`)
      t.match(conditionOf(object, 'TLSReady'), { status: 'True', reason: 'CertificateServed' })
      t.not(conditionOf(object, 'SessionStorageWarning')?.status, 'True')
    }
  })
  if (!t.passing()) throw new Error(await node.output())

  await t.test('own port: serves TLS only, with the certificate of the Secret', async (t) => {
    const { url } = get('vmcp/tools').status
    t.equal(url, `https://vmcp-tools.${namespace}.svc.cluster.local:4483/mcp`)
    await t.resolves(servedSerial(url, inside.ca))
    await t.rejects(servedSerial(url, outside.ca), { code: 'UNABLE_TO_VERIFY_LEAF_SIGNATURE' })
    await t.rejects(undiciFetch(url.replace('https:', 'http:')), 'no cleartext')
  })

  await t.test(
    'HTTPRoute: conforms to the Gateway API; the status repeats the message of the Gateway',
    async (t) => {
      for (const { key, object, deployment, host } of subjects) {
        const { apiVersion, kind, spec } = get(`httproute/${deployment}`)
        t.match(spec, { hostnames: [host], rules: [{ timeouts: { request: '0s' } }] })
        const copy = { apiVersion, kind, metadata: { name: 'copy', namespace }, spec }
        const strict = ['create', '--dry-run=server', '--validate=strict', '-f', '-']
        const { code, stderr } = kube.kubectl(strict, JSON.stringify(copy))
        t.equal(code, 0, stderr)
        t.match(conditionOf(object, 'ExposureReady'), { status: 'False', reason: 'ExposurePending' })
        t.strictSame(verdict(key), done, `${key}: no tool waits for the Gateway`)
      }
      const refusal = {
        reason: 'NotAllowedByListeners',
        message: 'no listener lets routes of this namespace in',
      }
      await answerRoute(api, namespace, 'vmcp-tools', refusal)
      const told = () => conditionOf('vmcp/tools', 'ExposureReady')
      await until("the Gateway's rejection", () => told().reason === refusal.reason)
      t.match(told(), { status: 'False', ...refusal })
      for (const { deployment } of subjects) await answerRoute(api, namespace, deployment)
      for (const { object } of subjects) {
        await until(`the route of ${object}`, () => conditionOf(object, 'ExposureReady').reason === 'Exposed')
      }
    },
  )

  await t.test(
    'a client outside of the cluster: TLS to the Gateway, its route, TLS to the pods',
    async (t) => {
      const { externalUrl } = get('vmcp/tools').status
      t.equal(externalUrl, 'https://tools.example.com/mcp')
      await t.rejects(call(agent, externalUrl, 'everything_echo'), 'fails without the policy of the guide')
      apply({
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { name: 'tools-ca', namespace },
        data: { 'ca.crt': inside.ca },
      })
      kube.must(['apply', '--validate=strict', '-f', '-'], backendPolicies())
      await bothServe(t, 'before anything changes')
    },
  )

  await t.test('PodDisruptionBudget: allows the eviction of one pod at a time', async (t) => {
    for (const { deployment } of subjects) {
      const status = () => get(`pdb/${deployment}`).status
      await until(`the budget of ${deployment}`, () => status().currentHealthy === 2)
      t.match(status(), { desiredHealthy: 1, expectedPods: 2, disruptionsAllowed: 1 })
      const { app, ...more } = get(`deployment/${deployment}`).spec.selector.matchLabels
      const selector = Object.entries({ app, ...more }).map(([name, value]) => `${name}=${String(value)}`)
      const { items } = untyped(kube.get(['pods', '-n', namespace, '-l', selector.join(',')]))
      const evict = (pod: { metadata: { name: string } } | undefined) =>
        api.send('POST', `/api/v1/namespaces/${namespace}/pods/${pod?.metadata.name}/eviction`, {
          apiVersion: 'policy/v1',
          kind: 'Eviction',
          metadata: { name: pod?.metadata.name, namespace },
        })
      await evict(items[0])
      await t.rejects(evict(items[1]), /429/, `${deployment}: rejects a second eviction`)
    }
    await bothServe(t, 'while a pod is replaced')
    for (const { deployment } of subjects) {
      await until(`two pods of ${deployment}`, () => get(`pdb/${deployment}`).status.currentHealthy === 2)
    }
  })

  await t.test('HorizontalPodAutoscaler: sets the replica count, and its failure is reported', async (t) => {
    const { spec, status } = get('hpa/vmcp-tools')
    t.match(spec, { minReplicas: 2, maxReplicas: 4, scaleTargetRef: { name: 'vmcp-tools' } })
    t.match(status, { currentReplicas: 2 })
    const told = () => conditionOf('vmcp/tools', 'AutoscalingActive')
    await until("the autoscaler's condition", () => told() !== undefined)
    t.match(told(), { status: 'False', reason: 'FailedGetContainerResourceMetric' }, 'no metrics server')
  })

  await t.test(
    'a rollout fails and is repaired: no tool reports it as done too early, clients are served',
    async (t) => {
      const deadline = JSON.stringify({ spec: { progressDeadlineSeconds: 10 } })
      for (const { deployment } of subjects)
        kube.must(['patch', 'deployment', deployment, '-n', namespace, '--type=merge', '-p', deadline])
      apply(...exposedServers({ image: absentImage }))
      const broken = generationsNow()
      const waiting = subjects.map(({ object }) => waitMeanwhile(t, kube, object))
      for (const { object } of subjects) t.equal(kubectlWait(object, 1).code, 1, `${object}: kubectl wait`)
      await bothServe(t, 'while the rollout does not go on')
      for (const { key, object } of subjects) {
        await until(`${key} stalled`, () => verdict(key)?.kstatus === 'Failed')
        t.strictSame(verdict(key), failed, `${key}: all agree`)
        t.match(get(object).status, { phase: 'Degraded', message: /rollout is stuck/ })
        t.equal(kubectlWait(object, 1).code, 1, `${object}: kubectl wait, stalled`)
      }
      await bothServe(t, 'while the rollout is stuck')
      for (const [index, { key }] of subjects.entries()) nobodyTakesItForDone(t, key, broken[index] ?? 0)
      for (const child of waiting) t.equal(child.exitCode, null, 'kubectl wait is still running')

      const ends = waiting.map((child) => once(child, 'exit'))
      apply(...exposedServers({ image: nextImage }))
      await doneIsTrue(t, generationsNow(), nextImage)
      for (const end of ends) t.strictSame(await end, [0, null], 'kubectl wait ends')
      await bothServe(t, 'after it is mended')
    },
  )

  await t.test('a missing Secret and a server that cannot start are reported, then repaired', async (t) => {
    const { url } = get('vmcp/tools').status
    const before = await servedSerial(url, inside.ca)
    const absent = { secretName: 'next-tls', server: 'docker.io/mcp/everything:absent' }
    apply(...exposedServers({ image: nextImage, ...absent }))
    const broken = generationsNow()
    await until(
      'the missing Secret is reported',
      () => conditionOf('vmcp/tools', 'TLSReady').status === 'False',
    )
    t.match(conditionOf('vmcp/tools', 'TLSReady'), { reason: 'TLSSecretNotFound', message: /next-tls/ })
    // The pod is absent for a moment while it is replaced.
    const why = 'jsonpath={.status.containerStatuses[0].state.waiting.reason}'
    const heldUp = async () => {
      const message = () => String(conditionOf('mcpserver/everything', 'Reconciling')?.message)
      await until('the next step is reported', () => message().includes('kubectl delete pod'))
      return message()
    }
    const pulls = () =>
      kube.kubectl(['get', 'pod/mcp-everything-server-0', '-n', namespace, '-o', why]).stdout
    await until('the server that cannot start', () => pulls() === 'ImagePullBackOff')
    for (const { object } of subjects) t.equal(kubectlWait(object, 2).code, 1, `${object}: kubectl wait`)
    t.equal(await servedSerial(url, inside.ca), before, 'running pods stay')
    for (const [index, { key }] of subjects.entries()) nobodyTakesItForDone(t, key, broken[index] ?? 0)

    const next = await certificate()
    apply(
      tlsSecret('next-tls', next, inside.ca),
      ...exposedServers({ image: nextImage, secretName: 'next-tls' }),
    )
    // Kubernetes does not repair this on its own. The reported step must be sufficient.
    const [, step = ''] = /delete the pod: kubectl (.*)/.exec(await heldUp()) ?? []
    kube.must([...step.split(' '), '-n', namespace])
    for (const { object } of subjects) t.equal(kubectlWait(object, 90).code, 0, `${object}: kubectl wait`)
    for (const { key } of subjects) await until(`${key} done`, () => verdict(key)?.argo === 'Healthy')
    for (const { key } of subjects) t.strictSame(verdict(key), done, `${key}: all agree`)
    t.equal(await servedSerial(url, inside.ca), next.serialNumber)
    await bothServe(t, 'after both are mended')
  })

  await t.test('deletion: routes, budgets and the autoscaler are deleted with their servers', async (t) => {
    for (const { object } of subjects) kube.must(['delete', object, '-n', namespace])
    const left = () =>
      kube.must(['get', 'httproutes,pdb,hpa,services', '-n', namespace, '-o', 'name']).trim().split('\n')
    await until('the deletion of all objects', () => left().length === 1)
    t.strictSame(left(), ['service/redis'])
  })
}

t.setTimeout(600_000)

if (missing) t.test('exposed servers on a cluster', { skip: missing }, () => {})
else if (isInsideNamespaces()) await t.test('exposed servers on a cluster', scenario)
else await insideNamespaces(t, import.meta.filename)
