/** With default values, the chart renders the same objects as the plain manifests. Needs Helm. */
import { lstatSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { parse } from 'yaml'
import { helm, helmMissing } from '../../helpers/kube/helm.ts'
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

/**
 * Returns the objects by id for comparison, without CRDs, objects of `helm test` and the namespace (a chart is
 * installed into one), and without the last part of Job names.
 */
function comparable(objects: readonly Obj[]): Record<string, unknown> {
  const kept = objects.filter(
    ({ kind, metadata }) =>
      kind !== 'CustomResourceDefinition' &&
      kind !== 'Namespace' &&
      !('helm.sh/hook' in (metadata.annotations ?? {})),
  )
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

/** Adds the fields of the cert-manager component's patch. */
function annotated(objects: readonly Obj[]): readonly Obj[] {
  const annotations = { 'cert-manager.io/inject-ca-from': 'gatehouse-system/gatehouse-hooks' }
  return objects.map((object) =>
    object.kind === 'ValidatingWebhookConfiguration'
      ? { ...object, metadata: { ...object.metadata, annotations } }
      : object,
  )
}

const variants = [
  { title: 'defaults', set: {}, objects: kustomized('overlays/private-metacontroller') },
  { title: 'shared Metacontroller', set: { 'metacontroller.enabled': false }, objects: kustomized() },
  {
    title: 'cert-manager',
    set: { 'certificates.mode': 'cert-manager', 'metacontroller.enabled': false },
    objects: annotated(kustomized('overlays/cert-manager')),
  },
  {
    title: 'monitoring',
    set: { 'serviceMonitor.enabled': true },
    objects: [...kustomized('overlays/private-metacontroller'), ...kustomized('monitoring')],
  },
] as const

const skip = helmMissing()
const template = (...flags: readonly string[]) =>
  helm(['template', 'x', chart, '-n', 'gatehouse-system', '--kube-version', '1.36.0', ...flags])

for (const { title, set, objects } of variants) {
  await t.test(`chart, ${title}: renders the objects of the kustomization`, { skip }, async (t) => {
    t.strictSame(comparable(renderedChart(set)), comparable(objects))
  })
}

await t.test('helm lint: reports nothing in strict mode', { skip }, async (t) => {
  const { code, stdout } = helm(['lint', '--strict', chart])
  t.equal(code, 0, stdout)
})

for (const name of readdirSync(join(chart, 'ci'))) {
  await t.test(`helm template, ci/${name}: renders`, { skip }, async (t) => {
    const ran = template('-f', join(chart, 'ci', name))
    t.equal(ran.code, 0, ran.stderr)
  })
}

await t.test('helm template: rejects values that values.schema.json does not allow', { skip }, async (t) => {
  const ran = template('--set', 'redis.secretName=cache', '--set', 'hooks.replica=1')
  t.equal(ran.code, 1)
  t.match(ran.stderr, 'redis')
  t.match(ran.stderr, 'replica')
})

await t.test(
  'helm template: certificates that would be renewed at once are rejected',
  { skip },
  async (t) => {
    const certificates = (lifetime: string, renewBefore: string) =>
      template('--set', `certificates.lifetime=${lifetime},certificates.renewBefore=${renewBefore}`)
    const ran = certificates('24h', '24h')
    t.equal(ran.code, 1)
    t.match(
      ran.stderr,
      'certificates.renewBefore is 24h: it must be shorter than certificates.lifetime, which is 24h',
    )
    t.equal(certificates('100h', '24h').code, 0, 'numbers, not texts, are compared')
    t.equal(certificates('90m', '24m').code, 0)
  },
)

await t.test(
  'helm template: definitions are objects of the release, and are kept when it is removed',
  { skip },
  async (t) => {
    const crds = (...flags: readonly string[]) =>
      objectsIn(template(...flags).stdout).filter(({ kind }) => kind === 'CustomResourceDefinition')
    const ours = crds()
    t.equal(ours.length, readdirSync(join(manifestsFolder, 'crds')).length)
    for (const { metadata } of ours) t.equal(metadata.annotations?.['helm.sh/resource-policy'], 'keep')
    t.strictSame(crds('--set', 'definitions.enabled=false'), [])
    t.equal(crds('--include-crds').length, ours.length + 3, "with Metacontroller's own")
    t.equal(
      crds('--include-crds', '--set', 'metacontroller.enabled=false').length,
      ours.length,
      'and without',
    )
  },
)

await t.test('chart: contains the definitions as files, which helm packages without a warning', async (t) => {
  const there = readdirSync(join(manifestsFolder, 'crds')).toSorted()
  t.strictSame(
    readdirSync(join(chart, 'definitions')).toSorted(),
    [...there, 'kustomization.yaml'].toSorted(),
  )
  for (const name of there) {
    t.notOk(lstatSync(join(chart, 'definitions', name)).isSymbolicLink(), name)
    const copy = readFileSync(join(chart, 'definitions', name), 'utf8')
    const source = readFileSync(join(manifestsFolder, 'crds', name), 'utf8')
    t.equal(copy.replace('  annotations: {helm.sh/resource-policy: keep}\n', ''), source, name)
  }
})

t.setTimeout(120_000)

await t.test('chart: version and app version match the project’s', async (t) => {
  const { version }: { version: string } = JSON.parse(
    readFileSync(join(manifestsFolder, '../package.json'), 'utf8'),
  )
  t.match(parse(readFileSync(join(chart, 'Chart.yaml'), 'utf8')), {
    version,
    appVersion: version,
    apiVersion: 'v2',
  })
})
