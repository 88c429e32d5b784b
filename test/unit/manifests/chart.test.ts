/** The chart and the plain manifests are one: with default values it renders the same objects. */
import { spawnSync } from 'node:child_process'
import { lstatSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Ajv } from 'ajv'
import t from 'tap'
import { parse } from 'yaml'
import {
  idOf,
  kustomized,
  manifestsFolder,
  type Obj,
  objectsIn,
  renderedChart,
  withoutEmpty,
} from '../../helpers/hooks/manifests.ts'

const chart = join(manifestsFolder, 'chart')

/** By id, for comparison: no CRDs, no namespace (a chart is installed into one), Jobs without the end of their name. */
function comparable(objects: readonly Obj[]): Record<string, unknown> {
  const kept = objects.filter(({ kind }) => kind !== 'CustomResourceDefinition' && kind !== 'Namespace')
  const named = kept.map((object) =>
    object.kind === 'Job'
      ? { ...object, metadata: { ...object.metadata, name: object.metadata.name.replace(/-[\w-]+$/, '') } }
      : object,
  )
  return Object.fromEntries(
    named
      .map((object) => [idOf(object), withoutEmpty(object)] as const)
      .toSorted(([a], [b]) => (a < b ? -1 : 1)),
  )
}

/** What the cert-manager component's patch adds. */
function annotated(objects: readonly Obj[]): readonly Obj[] {
  const annotations = { 'cert-manager.io/inject-ca-from': 'gatehouse-system/gatehouse-hooks' }
  return objects.map((object) =>
    object.kind === 'ValidatingWebhookConfiguration'
      ? { ...object, metadata: { ...object.metadata, annotations } }
      : object,
  )
}

const variants = [
  { title: 'defaults', set: {}, objects: kustomized() },
  {
    title: 'cert-manager',
    set: { 'certificates.mode': 'cert-manager' },
    objects: annotated(kustomized('overlays/cert-manager')),
  },
  {
    title: 'private Metacontroller and monitoring',
    set: { 'metacontroller.enabled': true, 'serviceMonitor.enabled': true },
    objects: [...kustomized('overlays/private-metacontroller'), ...kustomized('monitoring')],
  },
] as const

for (const { title, set, objects } of variants) {
  await t.test(`chart, ${title}: renders what the kustomization holds`, async (t) => {
    t.strictSame(comparable(renderedChart(set)), comparable(objects))
  })
}

const helm = spawnSync('helm', ['version']).status === 0
for (const { title, set } of variants) {
  await t.test(
    `helm template, ${title}: agrees with our own rendering`,
    { skip: !helm && 'no helm in PATH' },
    async (t) => {
      const flags = Object.entries(set).flatMap(([path, value]) => ['--set', `${path}=${value}`])
      const args = ['template', 'x', chart, '-n', 'gatehouse-system', '--kube-version', '1.36.0', ...flags]
      const ran = spawnSync('helm', args, { encoding: 'utf8' })
      t.equal(ran.status, 0, ran.stderr)
      t.strictSame(comparable(objectsIn(ran.stdout)), comparable(renderedChart(set)))
    },
  )
}

await t.test('chart: values end up where they belong', async (t) => {
  const objects = renderedChart(
    {
      'images.hooks': 'registry.example.com/hooks@sha256:0000',
      'images.runtime': 'registry.example.com/runtime:1',
      'images.pullSecrets': [{ name: 'pull' }],
      'hooks.replicas': 5,
      'hooks.nodeSelector': { disk: 'ssd' },
      'hooks.extraEnv': [{ name: 'GATEHOUSE_ENABLE_OBO', value: 'true' }],
      'admission.failurePolicy': 'Ignore',
      'stdio.attach': false,
    },
    'elsewhere',
  )
  const deployment = objects.find(({ kind }) => kind === 'Deployment')
  t.match(deployment, {
    metadata: { namespace: 'elsewhere' },
    spec: {
      replicas: 5,
      template: {
        spec: {
          nodeSelector: { disk: 'ssd' },
          imagePullSecrets: [{ name: 'pull' }],
          containers: [
            {
              image: 'registry.example.com/hooks@sha256:0000',
              env: [
                { name: 'GATEHOUSE_VERSION' },
                { name: 'GATEHOUSE_RUNTIME_IMAGE', value: 'registry.example.com/runtime:1' },
                { name: 'GATEHOUSE_STDIO_ATTACH', value: 'false' },
                { name: 'GATEHOUSE_ENABLE_OBO', value: 'true' },
              ],
            },
          ],
        },
      },
    },
  })
  t.match(
    objects.find(({ kind }) => kind === 'ValidatingWebhookConfiguration'),
    { webhooks: [{ failurePolicy: 'Ignore', clientConfig: { service: { namespace: 'elsewhere' } } }] },
  )
  const text = JSON.stringify(objects)
  t.notMatch(text, 'gatehouse-system', 'no trace of the default namespace')
  t.match(text, 'https://gatehouse-hooks.elsewhere.svc:8443/hooks/')
})

await t.test('values.schema.json: takes the defaults, refuses the misspelt and the unknown', async (t) => {
  const schema: object = JSON.parse(readFileSync(join(chart, 'values.schema.json'), 'utf8'))
  const values: Record<string, object> = parse(readFileSync(join(chart, 'values.yaml'), 'utf8'))
  const validate = new Ajv().compile(schema)
  t.ok(validate(values), JSON.stringify(validate.errors))
  t.notOk(validate({ ...values, hook: {} }), 'a section that is none')
  t.notOk(validate({ ...values, hooks: { ...values['hooks'], replica: 1 } }), 'a setting that is none')
  t.notOk(validate({ ...values, certificates: { mode: 'selfsigned' } }), 'a mode that is none')
  t.notOk(validate({ ...values, hooks: { replicas: 0 } }), 'no hooks server at all')
})

await t.test('chart: carries the definitions as files, which helm packages without a warning', async (t) => {
  const there = readdirSync(join(manifestsFolder, 'crds')).toSorted()
  t.strictSame(readdirSync(join(chart, 'crds')).toSorted(), there)
  for (const name of there) {
    t.notOk(lstatSync(join(chart, 'crds', name)).isSymbolicLink(), name)
    const [copy, source] = [chart, manifestsFolder].map((at) => readFileSync(join(at, 'crds', name), 'utf8'))
    t.equal(copy, source, name)
  }
})

await t.test('chart: version and app version are the project’s', async (t) => {
  const { version }: { version: string } = JSON.parse(
    readFileSync(join(manifestsFolder, '../package.json'), 'utf8'),
  )
  t.match(parse(readFileSync(join(chart, 'Chart.yaml'), 'utf8')), {
    version,
    appVersion: version,
    apiVersion: 'v2',
  })
})

await t.test(
  'chart: HTTPRoutes only with integrations.gatewayAPI, as with the kustomize component',
  async (t) => {
    const routed = (set: Record<string, unknown>) => {
      const text = JSON.stringify(renderedChart(set))
      return { managed: text.split('"httproutes"').length - 1, told: text.includes('GATEHOUSE_GATEWAY_API') }
    }
    t.strictSame(routed({}), { managed: 0, told: false })
    t.strictSame(routed({ 'integrations.gatewayAPI': true }), { managed: 3, told: true })
    const component = readFileSync(join(manifestsFolder, 'gateway-api/kustomization.yaml'), 'utf8')
    t.equal(component.split('httproutes').length - 1, 3)
    t.match(component, 'GATEHOUSE_GATEWAY_API')
  },
)
