/**
 * `helm install` alone installs everything on an empty cluster: a real Helm, API server, controller manager and
 * Metacontroller, and a node that runs the pods. Then test, upgrade, a conflict, uninstall, and another install.
 */
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { kinds } from '../../../schemas/index.ts'
import type { KubeApiserver } from '../../helpers/kube/apiserver.ts'
import { helm, helmMissing } from '../../helpers/kube/helm.ts'
import { insideNamespaces, isInsideNamespaces, startCluster } from '../../helpers/kube/node/index.ts'
import { manifestsFolder } from '../../helpers/hooks/manifests.ts'
import {
  installationMissing,
  quickstartImages,
  systemNamespace as system,
  until,
} from '../../helpers/kube/node/installation.ts'

const chart = join(manifestsFolder, 'chart')
const quickstart = join(manifestsFolder, 'examples/quickstart')
const missing = helmMissing() || installationMissing()

function ownedBy(kube: KubeApiserver): readonly string[] {
  const kinds =
    'clusterroles,clusterrolebindings,validatingwebhookconfigurations,compositecontrollers,deployments,jobs,cronjobs,services,secrets,serviceaccounts,roles,rolebindings,networkpolicies,poddisruptionbudgets,pods'
  const args = [
    'get',
    kinds,
    '-A',
    '-o',
    'name',
    '--ignore-not-found',
    '-l',
    'app.kubernetes.io/part-of=gatehouse',
  ]
  return kube.must(args).split('\n').filter(Boolean)
}

async function scenario(t: Test): Promise<void> {
  t.setTimeout(600_000)
  const cluster = await startCluster(t, quickstartImages)
  const { kube, node } = cluster
  const release = (command: string, ...more: readonly string[]) =>
    helm([command, 'gatehouse', chart, '-n', system, ...more], kube)
  const available = (name: string) => {
    const { spec, status, metadata } = kube.get(['deployment', name, '-n', system])
    return (
      status.observedGeneration === metadata.generation &&
      status.updatedReplicas === spec.replicas &&
      status.replicas === spec.replicas &&
      status.availableReplicas === spec.replicas
    )
  }

  await t.test('helm install alone: makes everything available', async (t) => {
    const { code, stdout, stderr } = release('install', '--create-namespace', '--wait', '--timeout', '5m')
    t.equal(code, 0, stderr || (await node.output()))
    t.match(stdout, 'helm test gatehouse -n gatehouse-system')
    t.ok(available('gatehouse-hooks'))
    t.ok(available('gatehouse-metacontroller'))
    const crds = kube.must(['get', 'crds', '-o', 'name'])
    t.equal(crds.split('gatehouse.dev').length - 1, kinds.length)
    t.match(crds, 'compositecontrollers.metacontroller.k8s.io')
  })
  if (!t.passing()) throw new Error(await node.output())

  const leftOfTest = () => ownedBy(kube).filter((name) => name.includes('gatehouse-test'))

  await t.test('helm test that fails: keeps its pod for the log, removes its rights', async (t) => {
    const scale = (count: number) =>
      kube.must(['scale', 'deployment/gatehouse-hooks', '-n', system, `--replicas=${count}`])
    scale(0)
    const { code } = helm(['test', 'gatehouse', '-n', system, '--timeout', '10s'], kube)
    t.equal(code, 1)
    t.strictSame(leftOfTest(), ['pod/gatehouse-test'])
    scale(2)
    await until('the hooks', () => available('gatehouse-hooks'), cluster)
  })

  await t.test('helm test: passes, and leaves no objects behind', async (t) => {
    const { code, stdout, stderr } = helm(['test', 'gatehouse', '-n', system, '--timeout', '3m'], kube)
    t.equal(code, 0, stdout + stderr + (code === 0 ? '' : await node.output()))
    t.match(stdout, /Phase: +Succeeded/)
    t.strictSame(leftOfTest(), [])
  })

  await t.test('the quickstart and the server of the notes become Ready', async (t) => {
    kube.must(['apply', '-k', quickstart])
    const notes = helm(['get', 'notes', 'gatehouse', '-n', system], kube).stdout
    const [, manifest = ''] = /<<'EOF'\n([^]*?)\n  EOF/.exec(notes) ?? []
    kube.must(['apply', '-f', '-'], manifest)
    for (const name of ['vmcp/quickstart', 'mcpserver/hello']) {
      const { code, stderr } = kube.kubectl(['wait', name, '--for=condition=Ready', '--timeout=120s'])
      t.equal(code, 0, stderr + (code === 0 ? '' : await node.output()))
    }
  })

  await t.test('helm upgrade with a changed value: rolls only the hooks', async (t) => {
    const before = kube.get(['deployment', 'gatehouse-metacontroller', '-n', system]).metadata.generation
    const { code, stderr } = release('upgrade', '--set', 'platform.clusterDomain=cluster.internal', '--wait')
    t.equal(code, 0, stderr)
    t.ok(available('gatehouse-hooks'))
    const env = kube.get(['deployment', 'gatehouse-hooks', '-n', system]).spec.template.spec.containers[0].env
    t.match(
      env.find(({ name }: { name: string }) => name === 'GATEHOUSE_CLUSTER_DOMAIN'),
      { value: 'cluster.internal' },
    )
    t.equal(kube.get(['deployment', 'gatehouse-metacontroller', '-n', system]).metadata.generation, before)
    const url = () => kube.get(['mcpserver', 'hello']).status.url
    await until('the new domain in a status', () => String(url()).includes('.svc.cluster.internal'), cluster)
  })

  await t.test('helm uninstall: keeps definitions and objects, removes the rest', async (t) => {
    const { code, stderr } = helm(['uninstall', 'gatehouse', '-n', system, '--wait'], kube)
    t.equal(code, 0, stderr)
    await until('the removal of the installation', () => ownedBy(kube).length === 0, cluster)
    const crds = kube.must(['get', 'crds', '-o', 'name'])
    t.equal(crds.split('gatehouse.dev').length - 1, kinds.length)
    t.match(crds, 'compositecontrollers.metacontroller.k8s.io')
    t.equal(
      kube.kubectl(['get', 'vmcp/quickstart', 'deployment/vmcp-quickstart']).code,
      0,
      'running servers keep running',
    )
  })

  await t.test('helm install again: adopts the remaining objects', async (t) => {
    const { code, stderr } = release('install', '--wait', '--timeout', '5m')
    t.equal(code, 0, stderr)
    t.equal(kube.kubectl(['wait', 'vmcp/quickstart', '--for=condition=Ready', '--timeout=120s']).code, 0)
  })
}

t.setTimeout(600_000)

if (missing) t.test('helm install on a cluster', { skip: missing }, () => {})
else if (isInsideNamespaces()) await t.test('helm install on a cluster', scenario)
else await insideNamespaces(t, import.meta.filename)
