/**
 * Examines the cluster half: definitions, admission webhook and its certificates, hooks, Metacontroller, and whether the
 * resources are reconciled. Reads only; what the caller may not read is unknown.
 */
import { X509Certificate } from 'node:crypto'
import { apiGroup, apiVersion, kinds } from '../../../../schemas/index.ts'
import type { JsonRecord } from '../../../oauth/index.ts'
import { listed } from '../remote/facts.ts'
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
  /** Name of the context. */
  readonly context: string
  readonly read: ClusterReader
  /** Of this program; the hooks' URLs carry theirs. */
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
  if (failure === 'unreachable') return failed('cluster.unreachable', `no response to reading ${what}`)
  if (failure === 'unauthorized') return failed('cluster.credentials', 'status 401')
  return { result: 'unknown', code: 'cluster.rights', observed: `${what} may not be read` }
}

async function checkDefinitions({ read }: ClusterFacts): Promise<CheckOutcome> {
  const list = await read(definitions)
  if (typeof list === 'string') return cannotRead(list, 'definitions')
  const version = apiVersion.split('/').at(-1)
  const bad = kinds.flatMap(({ plural }) => {
    const name = `${plural}.${apiGroup}`
    const found = itemsOf(list).find((each) => textAt(each, 'metadata', 'name') === name)
    if (found === undefined) return [`${name} is not there`]
    if (!isTrue(found, 'Established')) return [`${name} is not established`]
    const served = listAt(found, 'spec', 'versions').some(
      (one) => one['name'] === version && one['served'] === true,
    )
    return served ? [] : [`${name} does not serve ${version}`]
  })
  return bad.length === 0 ? ok(`${kinds.length} kinds`) : failed('cluster.crds', listed(bad))
}

function isTrue(object: JsonRecord, type: string): boolean {
  return listAt(object, 'status', 'conditions').some(
    (one) => one['type'] === type && one['status'] === 'True',
  )
}

async function checkWebhook(facts: ClusterFacts): Promise<CheckOutcome> {
  const found = await facts.read({
    group: 'admissionregistration.k8s.io',
    version: 'v1',
    plural: 'validatingwebhookconfigurations',
    name: hooksName,
  })
  if (found === 'absent') return failed('cluster.webhook', 'it is not there')
  if (typeof found === 'string') return cannotRead(found, 'webhook configurations')
  facts.webhook = found
  const webhooks = listAt(found, 'webhooks')
  const bundles = webhooks.map((one) => textAt(one, 'clientConfig', 'caBundle') ?? '')
  if (webhooks.length === 0 || bundles.includes('')) {
    return failed(
      'cluster.webhook-ca',
      `${bundles.filter((one) => one === '').length} of ${webhooks.length} without`,
    )
  }
  return checkAuthorities(bundles)
}

/** The latest end counts: during a rotation the old authority is there as well. */
function checkAuthorities(bundles: readonly string[]): CheckOutcome {
  const ends = bundles.map((bundle) =>
    Math.max(...certificatesIn(bundle).map((one) => Date.parse(one.validTo)), 0),
  )
  const end = Math.min(...ends)
  if (end === 0) return failed('cluster.webhook-ca', 'caBundle holds no certificate')
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
  if (namespace === undefined) return skipped('the webhook is called by URL')
  const found = await read({ group: 'apps', version: 'v1', plural: 'deployments', namespace, name })
  if (found === 'absent') return failed('cluster.hooks', `there is no Deployment ${namespace}/${name}`)
  if (typeof found === 'string') return cannotRead(found, `the Deployment ${namespace}/${name}`)
  if (serves(found)) return ok(`Deployment ${namespace}/${name} is available`)
  return failed('cluster.hooks', `Deployment ${namespace}/${name} is not available`)
}

/** To Kubernetes, a Deployment that was scaled to nothing is available. */
function serves(deployment: JsonRecord): boolean {
  const count = at(deployment, 'status', 'availableReplicas')
  return isTrue(deployment, 'Available') && typeof count === 'number' && count > 0
}

/** The private one is where the hooks are. Nothing is known of a shared one. */
async function stoppedMetacontroller({ read, webhook }: ClusterFacts): Promise<string | undefined> {
  const [first] = listAt(webhook, 'webhooks')
  const namespace = textAt(first, 'clientConfig', 'service', 'namespace')
  if (namespace === undefined) return undefined
  const name = 'gatehouse-metacontroller'
  const found = await read({ group: 'apps', version: 'v1', plural: 'deployments', namespace, name })
  if (typeof found === 'string' || serves(found)) return undefined
  return `Deployment ${namespace}/${name} is not available`
}

async function checkMetacontroller(facts: ClusterFacts): Promise<CheckOutcome> {
  const { read, version } = facts
  const group = 'metacontroller.k8s.io'
  const list = await read({ group, version: 'v1alpha1', plural: 'compositecontrollers' })
  if (list === 'absent') return failed('cluster.metacontroller', 'there is no kind CompositeController')
  if (typeof list === 'string') return cannotRead(list, 'CompositeControllers')
  const ours = itemsOf(list).filter(
    (one) => textAt(one, 'spec', 'parentResource', 'apiVersion') === apiVersion,
  )
  const handled = new Set(ours.map((one) => textAt(one, 'spec', 'parentResource', 'resource')))
  const lacking = kinds.map(({ plural }) => plural).filter((plural) => !handled.has(plural))
  if (lacking.length > 0)
    return failed('cluster.metacontroller', `no CompositeController for ${listed(lacking)}`)
  const stopped = await stoppedMetacontroller(facts)
  if (stopped !== undefined) return failed('cluster.metacontroller', stopped)
  const urls = ours.flatMap((one) => textAt(one, 'spec', 'hooks', 'sync', 'webhook', 'url') ?? [])
  const revisions = [...new Set(urls.map((url) => /[?&]rev=([\w.+-]{1,60})/.exec(url)?.[1] ?? 'none'))]
  const isCurrent = revisions.every((revision) => revision === version)
  return isCurrent
    ? ok(`${ours.length} controllers, version ${version}`)
    : warning('cluster.revision', `the hooks are called as ${listed(revisions)}, this is ${version}`)
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
      resources ? checkConditions(resources) : skipped('nothing was read'),
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
