/** Runs `gatehouse doctor --cluster` against a real API server, with installations in incomplete states. */
import { join, resolve } from 'node:path'
import t from 'tap'
import { issueCertificate } from '../../hooks/certificates/issue.ts'
import { runGatehouse } from '../helpers/gatehouse.ts'
import { kubeMissing, startKubeApiserver } from '../helpers/kube/apiserver.ts'
import { compositeControllerCrd } from '../helpers/kube/metacontroller-crd.ts'
import { untyped } from '../helpers/untyped.ts'

t.setTimeout(300_000)

const manifests = resolve(import.meta.dirname, '../../manifests')
const day = 86_400_000

interface Row {
  readonly id: string
  readonly result: string
  readonly code?: string
  readonly observed: string
}

await t.test('doctor --cluster with a real API server', { skip: kubeMissing() }, async (t) => {
  const kube = await startKubeApiserver(t)
  const absent = join(t.testdir({}), 'absent')

  async function doctor(kubeconfig = kube.kubeconfig, ...more: string[]) {
    const env = { PATH: process.env['PATH'], HOME: absent, KUBECONFIG: kubeconfig }
    const ran = await runGatehouse(['doctor', '--cluster', ...more, '-o', 'json'], '', env)
    if (ran.stdout === '') return { ...ran, row: (): Row | undefined => undefined }
    const checks = untyped(JSON.parse(ran.stdout)).targets[0].checks as Row[]
    return { ...ran, row: (id: string) => checks.find((each) => each.id === id) }
  }
  const apply = (object: object) => kube.must(['apply', '-f', '-'], JSON.stringify(object))
  function deploy(name: string): void {
    const labels = { app: name }
    const template = { metadata: { labels }, spec: { containers: [{ name: 'c', image: 'example.com/c:1' }] } }
    const metadata = { name, namespace: 'gatehouse-system' }
    apply({
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata,
      spec: { selector: { matchLabels: labels }, template },
    })
  }
  /** As in Kubernetes, a Deployment with no pods is available. */
  function become(name: string, count: number): void {
    const conditions = [{ type: 'Available', status: 'True', reason: 'Test', message: 'test' }]
    const status = { conditions, replicas: count, readyReplicas: count, availableReplicas: count }
    const patch = ['--subresource=status', '--type=merge', '-p', JSON.stringify({ status })]
    kube.must(['patch', 'deployment', name, '-n', 'gatehouse-system', ...patch])
  }
  async function authority(fromDays: number) {
    const { ca } = await issueCertificate({
      names: ['hooks.test'],
      now: new Date(Date.now() + fromDays * day),
      lifetimeMs: 30 * day,
    })
    const caBundle = Buffer.from(ca).toString('base64')
    const patch = [0, 1].map((index) => ({
      op: 'add',
      path: `/webhooks/${index}/clientConfig/caBundle`,
      value: caBundle,
    }))
    kube.must([
      'patch',
      'validatingwebhookconfiguration',
      'gatehouse-hooks',
      '--type=json',
      '-p',
      JSON.stringify(patch),
    ])
  }

  await t.test('nothing is installed', async (t) => {
    const { code, row } = await doctor()
    t.equal(code, 1)
    t.match(row('definitions'), { result: 'failed', code: 'cluster.crds', observed: /does not exist/ })
    t.match(row('webhook'), { result: 'skipped' })
  })

  await t.test('only the definitions are installed', async (t) => {
    kube.must(['apply', '--server-side', '-f', join(manifests, 'crds')])
    kube.must(['wait', '--for=condition=Established', 'crd', '--all', '--timeout=60s'])
    const { row } = await doctor()
    t.match(row('definitions'), { result: 'ok' })
    t.match(row('webhook'), { code: 'cluster.webhook' })
    t.match(row('metacontroller'), {
      code: 'cluster.metacontroller',
      observed: /CompositeController is not installed/,
    })
  })

  await t.test('a list has more than one page', async (t) => {
    const items = Array.from({ length: 501 }, (_, index) => ({
      apiVersion: 'gatehouse.dev/v1beta1',
      kind: 'MCPGroup',
      metadata: { name: `group-${index}`, namespace: 'default' },
      spec: {},
    }))
    kube.must(['create', '-f', '-'], JSON.stringify({ apiVersion: 'v1', kind: 'List', items }))
    t.match((await doctor()).row('reconciled'), { result: 'ok', observed: '501 resources' })
  })

  await t.test('the webhook: no authority, an expired one, a valid one', async (t) => {
    kube.must(['apply', '-f', join(manifests, 'base/admission.yaml')])
    t.match((await doctor()).row('webhook'), { code: 'cluster.webhook-ca' })
    await authority(-60)
    t.match((await doctor()).row('webhook'), { result: 'failed', code: 'cluster.webhook-expired' })
    await authority(-20)
    t.match((await doctor()).row('webhook'), { result: 'warning', code: 'cluster.webhook-expired' })
    await authority(0)
    t.match((await doctor()).row('webhook'), { result: 'ok', observed: /^until / })
  })

  await t.test('the hooks: no Deployment, an unavailable one, an available one', async (t) => {
    t.match((await doctor()).row('hooks'), { code: 'cluster.hooks', observed: /^Deployment .* not found/ })
    kube.must(['apply', '-f', join(manifests, 'base/namespace.yaml')])
    deploy('gatehouse-hooks')
    t.match((await doctor()).row('hooks'), { code: 'cluster.hooks', observed: /is not available/ })
    become('gatehouse-hooks', 0)
    const none = (await doctor()).row('hooks')
    t.match(none, { code: 'cluster.hooks', observed: /is not available/ }, 'scaled to zero')
    become('gatehouse-hooks', 1)
    t.match((await doctor()).row('hooks'), { result: 'ok' })
  })

  await t.test(
    'Metacontroller: without our controllers, with them, with another version of them',
    async (t) => {
      apply(compositeControllerCrd)
      kube.must(['wait', '--for=condition=Established', 'crd', '--all', '--timeout=60s'])
      t.match((await doctor()).row('metacontroller'), {
        code: 'cluster.metacontroller',
        observed: /no CompositeController for/,
      })
      kube.must(['apply', '-f', join(manifests, 'base/controllers.yaml')])
      const well = await doctor()
      t.match(well.row('metacontroller'), { result: 'ok' })
      t.equal(well.code, 0, well.stdout)
      deploy('gatehouse-metacontroller')
      become('gatehouse-metacontroller', 0)
      t.match((await doctor()).row('metacontroller'), {
        code: 'cluster.metacontroller',
        observed: 'Deployment gatehouse-system/gatehouse-metacontroller is not available',
      })
      become('gatehouse-metacontroller', 1)
      t.match((await doctor()).row('metacontroller'), { result: 'ok' })
      const [name] = kube.must(['get', 'compositecontrollers', '-o', 'name']).split('\n')
      const url = 'https://gatehouse-hooks.gatehouse-system.svc/hooks/x/sync?rev=0.0.1'
      const patch = { spec: { hooks: { sync: { version: 'v2', webhook: { url } } } } }
      kube.must(['patch', name ?? '', '--type=merge', '-p', JSON.stringify(patch)])
      t.match((await doctor()).row('metacontroller'), { code: 'cluster.revision', observed: /0\.0\.1/ })
    },
  )

  await t.test('rights: unreadable objects are unknown, an unknown context is an error', async (t) => {
    apply({ apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'nobody', namespace: 'default' } })
    const { code, row } = await doctor(kube.configOf('nobody', 'default'))
    t.equal(code, 1)
    t.match(row('definitions'), { result: 'unknown', code: 'cluster.rights' })
    const resources = '--resource=customresourcedefinitions.apiextensions.k8s.io,mcpservers.gatehouse.dev'
    kube.must(['create', 'clusterrole', 'some', '--verb=get,list', resources])
    kube.must([
      'create',
      'clusterrolebinding',
      'some',
      '--clusterrole=some',
      '--serviceaccount=default:nobody',
    ])
    const some = await doctor(kube.configOf('nobody', 'default'))
    t.match(some.row('reconciled'), { result: 'unknown', observed: /no permission to read .*mcpgroups/ })
    const other = await doctor(kube.kubeconfig, 'no-such-context')
    t.equal(other.code, 2)
    t.match(other.stderr, /no context no-such-context; expected one of /)
  })
})
