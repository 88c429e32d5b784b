/** The chart and the plain manifests are one: with default values it renders the same objects. */
import { spawnSync } from 'node:child_process'
import { lstatSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
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
