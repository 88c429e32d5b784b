/**
 * Examines a cluster: definitions, the admission webhook and its certificates, the hooks, Metacontroller, and the
 * resources. Read-only. Objects that the caller has no permission to read are reported as unknown.
 */
import { X509Certificate } from 'node:crypto'
import { apiGroup, apiVersion, kinds } from '../../../../schemas/index.ts'
import type { JsonRecord } from '../../../oauth/index.ts'
import { joinList } from '../remote/facts.ts'
import { failed, type Finding, ok, type CheckOutcome, skipped, warning } from '../report/finding.ts'
import { makeClean } from '../report/text.ts'
import { type Check, walk } from '../report/walk.ts'
import {
  at,
  type ClusterReader,
  itemsOf,
  listAt,
  type ReadFailure,
  textAt,
} from '../../../toolkit/cluster/objects.ts'
import { checkConditions, checkReconciled, readResources, type ReadResources } from './resources.ts'

export interface ClusterExamination {
  /** The context's name. */
  readonly context: string
  readonly read: ClusterReader
  /** This program's version. The hooks' URLs contain the hooks' version. */
  readonly version: string
}

interface ClusterFacts extends ClusterExamination {
  webhook?: JsonRecord
  resources?: ReadResources
}

const soonMs = 14 * 86_400_000
const hooksName = 'gatehouse-hooks'
const definitions = { group: 'apiextensions.k8s.io', version: 'v1', plural: 'customresourcedefinitions' }

function cannotRead(failure: ReadFailure, what: string): CheckOutcome {
  if (failure === 'unreachable') return failed('cluster.unreachable', `no response when reading ${what}`)
  if (failure === 'unauthorized') return failed('cluster.credentials', 'status 401')
  return { result: 'unknown', code: 'cluster.rights', observed: `no permission to read ${what}` }
}

async function checkDefinitions({ read }: ClusterFacts): Promise<CheckOutcome> {
  const list = await read(definitions)
  if (typeof list === 'string') return cannotRead(list, 'definitions')
  const version = apiVersion.split('/').at(-1)
  const bad = kinds.flatMap(({ plural }) => {
    const name = `${plural}.${apiGroup}`
    const found = itemsOf(list).find((definition) => textAt(definition, 'metadata', 'name') === name)
    if (found === undefined) return [`${name} does not exist`]
    if (!isTrue(found, 'Established')) return [`${name} is not established`]
    const served = listAt(found, 'spec', 'versions').some(
      (entry) => entry['name'] === version && entry['served'] === true,
    )
    return served ? [] : [`${name} does not serve ${version}`]
  })
  return bad.length === 0 ? ok(`${kinds.length} kinds`) : failed('cluster.crds', joinList(bad))
}

function isTrue(object: JsonRecord, type: string): boolean {
  return listAt(object, 'status', 'conditions').some(
    (condition) => condition['type'] === type && condition['status'] === 'True',
  )
}

async function checkWebhook(facts: ClusterFacts): Promise<CheckOutcome> {
  const found = await facts.read({
    group: 'admissionregistration.k8s.io',
    version: 'v1',
    plural: 'validatingwebhookconfigurations',
    name: hooksName,
  })
  if (found === 'absent') return failed('cluster.webhook', 'it does not exist')
  if (typeof found === 'string') return cannotRead(found, 'webhook configurations')
  facts.webhook = found
  const webhooks = listAt(found, 'webhooks')
  const bundles = webhooks.map((webhook) => textAt(webhook, 'clientConfig', 'caBundle') ?? '')
  if (webhooks.length === 0 || bundles.includes('')) {
    return failed(
      'cluster.webhook-ca',
      `${bundles.filter((bundle) => bundle === '').length} of ${webhooks.length} without caBundle`,
    )
  }
  return checkAuthorities(bundles)
}

/** Checks the latest expiry in each bundle, because the bundle also contains the old authority during a rotation. */
function checkAuthorities(bundles: readonly string[]): CheckOutcome {
  const ends = bundles.map((bundle) =>
    Math.max(...certificatesIn(bundle).map((certificate) => Date.parse(certificate.validTo)), 0),
  )
  const end = Math.min(...ends)
  if (end === 0) return failed('cluster.webhook-ca', 'caBundle contains no certificate')
  const seen = `until ${new Date(end).toISOString().slice(0, 10)}`
  if (end < Date.now()) return failed('cluster.webhook-expired', seen)
  return end - Date.now() < soonMs ? warning('cluster.webhook-expired', seen) : ok(seen)
}

function certificatesIn(base64: string): readonly X509Certificate[] {
  const pem = Buffer.from(base64.slice(0, 1_000_000), 'base64').toString('latin1')
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----/g) ?? []
  return blocks.slice(0, 20).flatMap((block) => {
    try {
      return [new X509Certificate(block)]
    } catch {
      return []
    }
  })
}

async function checkHooks({ read, webhook }: ClusterFacts): Promise<CheckOutcome> {
  const [first] = listAt(webhook, 'webhooks')
  const namespace = textAt(first, 'clientConfig', 'service', 'namespace')
  const name = textAt(first, 'clientConfig', 'service', 'name') ?? hooksName
  if (namespace === undefined) return skipped('the webhook is called through a URL')
  const found = await read({ group: 'apps', version: 'v1', plural: 'deployments', namespace, name })
  if (found === 'absent') return failed('cluster.hooks', `Deployment ${namespace}/${name} not found`)
  if (typeof found === 'string') return cannotRead(found, `the Deployment ${namespace}/${name}`)
  if (isServing(found)) return ok(`Deployment ${namespace}/${name} is available`)
  return failed('cluster.hooks', `Deployment ${namespace}/${name} is not available`)
}

/** True when the Deployment has available replicas. Kubernetes treats a Deployment scaled to zero as available. */
function isServing(deployment: JsonRecord): boolean {
  const count = at(deployment, 'status', 'availableReplicas')
  return isTrue(deployment, 'Available') && typeof count === 'number' && count > 0
}

/**
 * Returns a problem with the private Metacontroller in the hooks' namespace. A shared Metacontroller is not checked.
 */
async function stoppedMetacontroller({ read, webhook }: ClusterFacts): Promise<string | undefined> {
  const [first] = listAt(webhook, 'webhooks')
  const namespace = textAt(first, 'clientConfig', 'service', 'namespace')
  if (namespace === undefined) return undefined
  const name = 'gatehouse-metacontroller'
  const found = await read({ group: 'apps', version: 'v1', plural: 'deployments', namespace, name })
  if (typeof found === 'string' || isServing(found)) return undefined
  return `Deployment ${namespace}/${name} is not available`
}

async function checkMetacontroller(facts: ClusterFacts): Promise<CheckOutcome> {
  const { read, version } = facts
  const group = 'metacontroller.k8s.io'
  const list = await read({ group, version: 'v1alpha1', plural: 'compositecontrollers' })
  if (list === 'absent')
    return failed('cluster.metacontroller', 'the kind CompositeController is not installed')
  if (typeof list === 'string') return cannotRead(list, 'CompositeControllers')
  const ours = itemsOf(list).filter(
    (controller) => textAt(controller, 'spec', 'parentResource', 'apiVersion') === apiVersion,
  )
  const handled = new Set(ours.map((controller) => textAt(controller, 'spec', 'parentResource', 'resource')))
  const missing = kinds.map(({ plural }) => plural).filter((plural) => !handled.has(plural))
  if (missing.length > 0)
    return failed('cluster.metacontroller', `no CompositeController for ${joinList(missing)}`)
  const stopped = await stoppedMetacontroller(facts)
  if (stopped !== undefined) return failed('cluster.metacontroller', stopped)
  const urls = ours.flatMap(
    (controller) => textAt(controller, 'spec', 'hooks', 'sync', 'webhook', 'url') ?? [],
  )
  const revisions = [...new Set(urls.map((url) => /[?&]rev=([\w.+-]{1,60})/.exec(url)?.[1] ?? 'none'))]
  const isCurrent = revisions.every((revision) => revision === version)
  return isCurrent
    ? ok(`${ours.length} controllers, version ${version}`)
    : warning(
        'cluster.revision',
        `the hooks are called with revision ${joinList(revisions)}, but this version is ${version}`,
      )
}

const rows = [
  ['definitions', [], checkDefinitions],
  ['webhook', ['definitions'], checkWebhook],
  ['hooks', ['webhook'], checkHooks],
  ['metacontroller', ['definitions'], checkMetacontroller],
  [
    'reconciled',
    ['definitions'],
    async (facts: ClusterFacts) => {
      facts.resources = await readResources(facts.read)
      return checkReconciled(facts.resources)
    },
  ],
  [
    'conditions',
    ['definitions'],
    async ({ resources }: ClusterFacts) =>
      resources ? checkConditions(resources) : skipped('no resources were read'),
  ],
] as const

const checks: readonly Check<ClusterFacts>[] = rows.map(([id, needs, run]) => ({
  id,
  hop: 'cluster',
  needs,
  object: ({ context }) => context,
  run,
}))

export function examineCluster(options: ClusterExamination): Promise<readonly Finding[]> {
  return walk(checks, { facts: { ...options }, clean: makeClean([]) })
}
