/** Each value of the chart has its effect, its default is documented, and the schema rejects everything else. Needs Helm. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Ajv } from 'ajv'
import t from 'tap'
import { parse } from 'yaml'
import { home } from '../../../schemas/index.ts'
import { manifestsFolder, type Obj, renderedChart } from '../../helpers/hooks/manifests.ts'
import { helmMissing } from '../../helpers/kube/helm.ts'
import { untyped } from '../../helpers/untyped.ts'

const chart = join(manifestsFolder, 'chart')
const skip = helmMissing()
type Objects = readonly Obj[]

/** Returns the member of an object at a path such as `spec.replicas`; numbers index lists. */
function at(object: unknown, path: string): unknown {
  return path.split('.').reduce((from, key) => untyped(from)?.[key], object)
}

const one =
  (kind: string, name: string, path: string) =>
  (objects: Objects): unknown =>
    at(
      objects.find((object) => object.kind === kind && object.metadata.name.startsWith(`gatehouse-${name}`)),
      path,
    )
const pod = (path: string) => one('Deployment', 'hooks', `spec.template.spec.${path}`)
const job = (path: string) => one('CronJob', 'certificates', `spec.jobTemplate.spec.template.spec.${path}`)
const controllerPod = (path: string) => one('Deployment', 'metacontroller', `spec.template.spec.${path}`)
const variable = (name: string) => (objects: Objects) =>
  untyped(pod('containers.0.env')(objects)).find((entry: { name: string }) => entry.name === name)?.value
const argument = (name: string) => (objects: Objects) =>
  untyped(job('containers.0.args')(objects)).find((text: string) => text.startsWith(`--${name}=`))
const of = (kind: string, path: string) => (objects: Objects) =>
  objects.filter((object) => object.kind === kind).map((object) => at(object, path))
/** Returns the same member of all pod templates. */
const pods = (path: string) => (objects: Objects) =>
  objects.flatMap((object) => {
    const template = {
      Deployment: 'spec.template',
      Job: 'spec.template',
      CronJob: 'spec.jobTemplate.spec.template',
    }
    const found = Object.entries(template).find(([kind]) => kind === object.kind)
    return found ? [at(object, `${found[1]}.${path}`)] : []
  })

/** The effect of a value: the path where it appears, and the expected result (by default the value itself). */
interface Effect {
  readonly set: unknown
  readonly found: readonly ((objects: Objects) => unknown)[]
  readonly as?: unknown
  /** Other values that are required for the effect. */
  readonly with?: Readonly<Record<string, unknown>>
}

const places = {
  nodeSelector: { disk: 'ssd' },
  tolerations: [{ operator: 'Exists' }],
  affinity: { podAffinity: {} },
}
// Helm merges maps, so every member of the default is set.
const size = { requests: { cpu: '1', memory: '1Gi' }, limits: { memory: '1Gi' } }

const effects: Readonly<Record<string, Effect>> = {
  'images.hooks': { set: 'r/hooks@sha256:00', found: [pod('containers.0.image'), job('containers.0.image')] },
  'images.runtime': { set: 'r/runtime:1', found: [variable('GATEHOUSE_RUNTIME_IMAGE')] },
  'images.pullPolicy': {
    set: 'Always',
    found: [pod, job, controllerPod].map((of) => of('containers.0.imagePullPolicy')),
  },
  'images.pullSecrets': {
    set: [{ name: 'pull' }],
    found: [pod, job, controllerPod].map((of) => of('imagePullSecrets')),
  },
  'images.runtimePullSecrets': {
    set: ['a', 'b'],
    found: [variable('GATEHOUSE_DEFAULT_IMAGE_PULL_SECRETS')],
    as: 'a,b',
  },
  'hooks.replicas': { set: 5, found: [one('Deployment', 'hooks', 'spec.replicas')] },
  'hooks.resources': { set: size, found: [pod('containers.0.resources')] },
  'hooks.extraEnv': { set: [{ name: 'MORE', value: 'x' }], found: [variable('MORE')], as: 'x' },
  'hooks.nodeSelector': { set: places.nodeSelector, found: [pod('nodeSelector'), job('nodeSelector')] },
  'hooks.tolerations': { set: places.tolerations, found: [pod('tolerations'), job('tolerations')] },
  'hooks.affinity': { set: places.affinity, found: [pod('affinity'), job('affinity')] },
  'hooks.topologySpreadConstraints': { set: [{ maxSkew: 2 }], found: [pod('topologySpreadConstraints')] },
  'hooks.priorityClassName': { set: 'high', found: [pod('priorityClassName')] },
  commonLabels: {
    set: { team: 'one' },
    found: [
      (objects) => [...new Set(objects.map((object) => object.metadata.labels?.['team']))],
      (objects) => [...new Set(pods('metadata.labels.team')(objects))],
    ],
    as: ['one'],
    with: { 'serviceMonitor.enabled': true },
  },
  podLabels: {
    set: { team: 'two' },
    found: [(objects) => [...new Set(pods('metadata.labels.team')(objects))]],
    as: ['two'],
    with: { commonLabels: { team: 'one' } },
  },
  podAnnotations: {
    set: { mesh: 'off' },
    found: [(objects) => [...new Set(pods('metadata.annotations.mesh')(objects))]],
    as: ['off'],
  },
  serviceAccountAnnotations: {
    set: { role: 'x' },
    found: [of('ServiceAccount', 'metadata.annotations.role')],
    as: ['x', 'x', 'x', 'x'],
  },
  // Helm renders the templates of definitions; chart.test.ts covers them.
  'definitions.enabled': { set: false, found: [], as: undefined },
  'admission.failurePolicy': {
    set: 'Ignore',
    found: [0, 1].map((index) =>
      one('ValidatingWebhookConfiguration', 'hooks', `webhooks.${index}.failurePolicy`),
    ),
  },
  'controllers.resyncPeriodSeconds': {
    set: 77,
    found: [(objects) => [...new Set(of('CompositeController', 'spec.resyncPeriodSeconds')(objects))]],
    as: [77],
  },
  'certificates.mode': { set: 'cert-manager', found: [of('Secret', 'metadata.name')], as: [] },
  'certificates.schedule': { set: '0 * * * *', found: [one('CronJob', 'certificates', 'spec.schedule')] },
  'certificates.lifetime': { set: '999h', found: [argument('lifetime')], as: '--lifetime=999h' },
  'certificates.renewBefore': { set: '9h', found: [argument('renew-before')], as: '--renew-before=9h' },
  'metacontroller.enabled': {
    set: false,
    found: [of('Deployment', 'metadata.name')],
    as: ['gatehouse-hooks'],
  },
  'metacontroller.namespace': {
    set: 'shared',
    as: { 'kubernetes.io/metadata.name': 'shared' },
    found: [one('NetworkPolicy', 'hooks', 'spec.ingress.1.from.1.namespaceSelector.matchLabels')],
  },
  'metacontroller.image': { set: 'r/meta:1', found: [controllerPod('containers.0.image')] },
  'metacontroller.resources': { set: size, found: [controllerPod('containers.0.resources')] },
  'metacontroller.nodeSelector': {
    set: places.nodeSelector,
    found: [controllerPod('nodeSelector')],
  },
  'metacontroller.tolerations': { set: places.tolerations, found: [controllerPod('tolerations')] },
  'metacontroller.affinity': { set: places.affinity, found: [controllerPod('affinity')] },
  'metacontroller.priorityClassName': { set: 'high', found: [controllerPod('priorityClassName')] },
  'platform.openshift': {
    set: true,
    found: [
      variable('GATEHOUSE_OPENSHIFT'),
      (objects) => String(!('runAsUser' in untyped(controllerPod('securityContext')(objects)))),
    ],
    as: 'true',
  },
  'platform.clusterDomain': {
    set: 'example.internal',
    found: [
      variable('GATEHOUSE_CLUSTER_DOMAIN'),
      (objects) => untyped(argument('cluster-domain')(objects)).split('=')[1],
    ],
  },
  'redis.address': { set: 'redis:6379', found: [variable('GATEHOUSE_DEFAULT_REDIS_ADDR')] },
  'redis.secretName': {
    set: 'cache',
    found: [variable('GATEHOUSE_DEFAULT_REDIS_SECRET_NAME')],
    with: { 'redis.address': 'redis:6379' },
  },
  'redis.secretKey': {
    set: 'word',
    found: [variable('GATEHOUSE_DEFAULT_REDIS_SECRET_KEY')],
    with: { 'redis.address': 'redis:6379', 'redis.secretName': 'cache' },
  },
  'integrations.gatewayAPI': {
    set: true,
    found: [
      variable('GATEHOUSE_GATEWAY_API'),
      (objects) =>
        String(JSON.stringify(of('CompositeController', 'spec')(objects)).split('"httproutes"').length === 5),
    ],
    as: 'true',
  },
  'integrations.onBehalfOf': { set: true, found: [variable('GATEHOUSE_ENABLE_OBO')], as: 'true' },
  'stdio.attach': {
    set: false,
    found: [
      variable('GATEHOUSE_STDIO_ATTACH'),
      (objects) => String(JSON.stringify(of('ClusterRole', 'rules')(objects)).includes('pods/attach')),
    ],
    as: 'false',
  },
  'serviceMonitor.enabled': {
    set: true,
    found: [of('ServiceMonitor', 'metadata.name')],
    as: ['gatehouse-hooks'],
  },
}

/** Returns the paths of values.yaml: sections have settings, other values stand alone. */
function pathsOf(values: Readonly<Record<string, unknown>>): readonly string[] {
  const alone = new Set(['commonLabels', 'podLabels', 'podAnnotations', 'serviceAccountAnnotations'])
  return Object.entries(values).flatMap(([section, members]) =>
    alone.has(section) ? [section] : Object.keys(members ?? {}).map((name) => `${section}.${name}`),
  )
}

const values: Record<string, object> = parse(readFileSync(join(chart, 'values.yaml'), 'utf8'))
const { version }: { version: string } = JSON.parse(
  readFileSync(join(manifestsFolder, '../package.json'), 'utf8'),
)

await t.test('values: the images have the version of the project', async (t) => {
  for (const [name, image] of Object.entries({ hooks: 'gatehouse-hooks', runtime: 'gatehouse' }))
    t.equal(at(values, `images.${name}`), `${home.registry}/${image}:${version}`)
})

await t.test('README: has a row for each value, with its default', async (t) => {
  const rows = [
    ...readFileSync(join(chart, 'README.md'), 'utf8').matchAll(/^\| `([\w.]+)` \| (.+?) \| .+ \|$/gm),
  ].map(([, path, shown]) => [path, shown])
  const expected = pathsOf(values).map((path) => {
    const text = JSON.stringify(at(values, path))
    return [path, text.length > 64 ? 'see `values.yaml`' : `\`${text}\``]
  })
  t.strictSame(rows, expected)
})

await t.test('values: each value has a tested effect', async (t) => {
  t.strictSame(pathsOf(values).toSorted(), Object.keys(effects).toSorted())
})

/** Rendered objects for comparison; each set of values is rendered once. */
const comparisons = new Map<string, Objects>()
function rendered(set: Readonly<Record<string, unknown>>): Objects {
  const key = JSON.stringify(set)
  const objects = comparisons.get(key) ?? renderedChart(set)
  comparisons.set(key, objects)
  return objects
}

t.setTimeout(120_000)

for (const [path, { set, found, as = set, with: more = {} }] of Object.entries(effects)) {
  await t.test(`values: ${path}`, { skip }, async (t) => {
    const [without, given] = [rendered(more), renderedChart({ ...more, [path]: set })]
    for (const find of found) {
      t.strictSame(find(given), as)
      t.notSame(find(without), as, 'and not by default')
    }
  })
}

await t.test('the namespace of the release is set everywhere', { skip }, async (t) => {
  const text = JSON.stringify(renderedChart({ 'serviceMonitor.enabled': true }, 'elsewhere'))
  t.notMatch(text, 'gatehouse-system', 'no trace of the default namespace')
  t.match(text, 'https://gatehouse-hooks.elsewhere.svc:8443/hooks/')
})

const validate = new Ajv().compile(JSON.parse(readFileSync(join(chart, 'values.schema.json'), 'utf8')))

await t.test(
  'values.schema.json: accepts the defaults, and rejects misspelled and unknown values',
  async (t) => {
    t.ok(validate(values), JSON.stringify(validate.errors))
    t.notOk(validate({ ...values, hook: {} }), 'an unknown section')
    t.notOk(validate({ ...values, hooks: { ...values['hooks'], replica: 1 } }), 'an unknown setting')
    const refused = (section: string, given: object) =>
      t.notOk(validate({ ...values, [section]: given }), JSON.stringify(given))
    refused('certificates', { mode: 'selfsigned' })
    for (const schedule of ['nonsense', '', '* * * *', '* * * * * *', '17 3 * * "'])
      refused('certificates', { schedule })
    for (const schedule of ['*/15 * * * *', '17 3 * * Mon-Fri', '0,30 0-6/2 1 JAN *', '@daily', '@every 12h'])
      t.ok(validate({ ...values, certificates: { schedule } }), schedule)
    for (const duration of ['90d', '2160', '', 'soon', '-1h'])
      for (const name of ['lifetime', 'renewBefore']) refused('certificates', { [name]: duration })
    refused('hooks', { replicas: 0 })
    refused('redis', { address: 'redis' })
    refused('redis', { address: '', secretName: 'cache' })
    refused('commonLabels', { 'app.kubernetes.io/name': 'mine' })
    refused('podLabels', { 'gatehouse.dev/instance': 'other' })
    refused('podAnnotations', { weight: 1 })
    refused('images', { runtimePullSecrets: ['Not a name'] })
    refused('platform', { clusterDomain: 'a "b"' })
  },
)

for (const name of readdirSync(join(chart, 'ci'))) {
  await t.test(`ci/${name}: is valid and renders`, { skip }, async (t) => {
    const given: Record<string, Record<string, unknown>> = parse(
      readFileSync(join(chart, 'ci', name), 'utf8'),
    )
    t.ok(validate(given), JSON.stringify(validate.errors))
    const set = pathsOf(given).map((path) => [path, at(given, path)])
    t.ok(renderedChart(Object.fromEntries(set)).length > 30)
  })
}
