/**
 * Builds one row for each resource in a session: its state, the reason, and the next step.
 *
 * Conditions from the hooks take precedence over process states. Process states take precedence over backend health
 * from a running virtual server. A problem at any of these levels can cause a problem at the next level.
 */
import { kindOf } from '../../../../schemas/index.ts'
import { causeFix, causeText } from '../../../observe/index.ts'
import { type LocalObject, objectKey } from '../../manifests/objects.ts'
import { quantity } from '../../terminal/plain-text.ts'
import { causeOfServer } from '../causes.ts'
import type { WorkloadView } from '../session.ts'
import type { ClientAddress } from './client-addresses.ts'

export type ResourceState = 'ready' | 'starting' | 'sign in' | 'failed' | 'not run' | 'unused'

export interface ResourceRow {
  readonly id: string
  /** Kind and name. */
  readonly label: string
  readonly state: ResourceState
  /** The address, or the reason why there is none and the next step. Can be empty. */
  readonly text: string
  /** The last lines of output, if they explain the state. */
  readonly lines: readonly string[]
  /** Start time in milliseconds since the epoch, while the resource is starting. */
  readonly since?: number | undefined
}

export interface Shown {
  readonly objects: readonly LocalObject[]
  readonly workloads: readonly WorkloadView[]
  readonly addresses: readonly ClientAddress[]
}

type Finding = Pick<ResourceRow, 'state' | 'text' | 'since'> & { readonly lines?: readonly string[] }

/** Returns the rows of the declared resources, in order. */
export function resourceRows(shown: Shown): ResourceRow[] {
  return shown.objects.flatMap((object) => {
    const finding = isDeclared(object) ? findingOf(object, shown) : undefined
    if (!finding) return []
    return [{ id: objectKey(object), label: labelOf(object), lines: [], ...finding }]
  })
}

function labelOf(object: { kind: string; metadata: { name: string } }): string {
  return `${object.kind} ${object.metadata.name}`
}

function isDeclared({ metadata }: LocalObject): boolean {
  return !metadata.ownerReferences?.some(({ controller }) => controller)
}

const foreignWorkloads: ReadonlySet<string> = new Set([
  'CronJob',
  'DaemonSet',
  'Deployment',
  'Job',
  'Pod',
  'ReplicaSet',
  'StatefulSet',
])

/** Returns undefined for resources without a state, such as Secrets. */
function findingOf(object: LocalObject, shown: Shown): Finding | undefined {
  if (kindOf(object.kind) === undefined || !object.apiVersion.startsWith('gatehouse.dev/')) {
    if (!foreignWorkloads.has(object.kind)) return undefined
    return { state: 'not run', text: 'only gatehouse.dev resources run here' }
  }
  const views = shown.workloads.filter(({ parent }) => parent.metadata.uid === object.metadata.uid)
  return (
    conditionFinding(object, views) ??
    processFinding(views) ??
    backendFinding(object, shown) ??
    healthyFinding(object, views, shown)
  )
}

interface Condition {
  readonly type: string
  readonly status: string
  readonly reason: string
  readonly message: string
}

/** Conditions that summarize other conditions or processes, or that matter only in a cluster. */
const notErrors: ReadonlySet<string> = new Set([
  'EmbeddingServerReady',
  // False means that every upstream identifies its users.
  'IdentitySynthesized',
  'ModelCacheApplied',
  'PermissionProfileApplied',
  'Ready',
  'SessionStorageWarning',
  'StdioReplicaCapped',
])

/** Reasons for the Valid condition that may merely summarize other conditions. */
const summaries: ReadonlySet<string> = new Set(['ConfigInvalid', 'ReferencesNotReady'])

function conditionFinding(object: LocalObject, views: readonly WorkloadView[]): Finding | undefined {
  const conditions = (object.status?.['conditions'] ?? []) as readonly Condition[]
  const broken = conditions.filter(({ type, status }) => status === 'False' && !notErrors.has(type))
  const causes = broken.length > 1 ? broken.filter(({ reason }) => !summaries.has(reason)) : broken
  const [first] = causes
  if (!first) return undefined
  const reasons = new Map(causes.map(({ message, reason }) => [message, `${message} (${reason})`]))
  const running = views.find(({ phase }) => phase === 'ready')
  return {
    state: 'failed',
    text: joinParts(
      [...reasons.values()].join(', '),
      causes.map(nextStep).find((step) => step !== ''),
      running && `the previous version is still running${address(running)}`,
    ),
  }
}

function nextStep({ reason, message }: Condition): string {
  if (reason.endsWith('NotFound') || /^Not found|does not exist/.test(message)) {
    return 'declare the resource in the manifests, or correct the reference'
  }
  return /^(?:Invalid|ConversionFailed|BackendsExcluded)/.test(reason) ? 'correct the named resource' : ''
}

/**
 * Returns the finding about the processes behind a resource. Undefined when all processes are ready, or when there are
 * no processes.
 */
function processFinding(views: readonly WorkloadView[]): Finding | undefined {
  const worst = (['failed', 'not runnable', 'starting'] as const).flatMap((phase) =>
    // Prefer a workload with a reason over a workload that waits for it.
    views.filter((view) => view.phase === phase).sort((a, b) => Number(!a.why) - Number(!b.why)),
  )[0]
  if (!worst) return stdioFinding(views)
  const { phase, why = '', cause, lines = [], parent } = worst
  if (phase === 'not runnable') return { state: 'not run', text: why }
  if (phase === 'starting') return { state: 'starting', text: cause ? causeText(cause) : why, lines }
  const failure = cause ?? { category: 'program_exited', detail: why }
  const text = joinParts(
    causeText(failure),
    causeFix(failure, parent.metadata.name),
    restartText(restartsOf(views)),
  )
  return { state: 'failed', text, lines }
}

/** Rounds the number down to a power of two, so that a server that never starts does not print a line per restart. */
function restartText(restarts: number): string {
  if (restarts === 0) return 'restarted automatically'
  return `restarted automatically, at least ${quantity(2 ** Math.floor(Math.log2(restarts)), 'restart')} so far`
}

/** Describes a stdio server that is running but returned an error for a session or has not responded yet. */
function stdioFinding(views: readonly WorkloadView[]): Finding | undefined {
  const [first] = views
  const cause = causeOfServer(views)
  if (!first || !cause) return undefined
  if (cause.category === 'program_refused') {
    return { state: 'failed', text: joinParts(causeText(cause), causeFix(cause, first.parent.metadata.name)) }
  }
  const starting = views.find((view) => view.starting)?.starting
  return starting && { state: 'starting', text: 'no response yet', ...starting }
}

function restartsOf(views: readonly WorkloadView[]): number {
  return views.reduce((sum, { restarts = 0 }) => sum + restarts, 0)
}

const serving: ReadonlySet<string> = new Set(['healthy', 'degraded', 'unknown'])

/** Returns the error that a running virtual server reports for a member. */
function backendFinding(object: LocalObject, { addresses }: Shown): Finding | undefined {
  if (object.kind === 'VirtualMCPServer' || object.kind === 'MCPGroup') return undefined
  for (const { name, backends } of addresses) {
    const backend = backends.find((candidate) => candidate.name === object.metadata.name)
    if (backend?.signInUrl !== undefined) return { state: 'sign in', text: `open ${backend.signInUrl}` }
    if (!backend || serving.has(backend.health)) continue
    return {
      state: 'failed',
      text: joinParts(
        `VirtualMCPServer ${name} cannot use it: ${backend.error ?? backend.health}`,
        backend.fix,
      ),
    }
  }
  return undefined
}

/** Describes a healthy resource by its address, or by the resources that use it. */
function healthyFinding(object: LocalObject, views: readonly WorkloadView[], shown: Shown): Finding {
  const status = object.status ?? {}
  const message = typeof status['message'] === 'string' ? status['message'] : ''
  const front = views.find(isFront) ?? views[0]
  if (front) {
    const restarts = restartsOf(views)
    const last = views.find(({ lastEnd }) => lastEnd !== undefined)?.lastEnd ?? ''
    const past = restarts === 0 ? '' : `${quantity(restarts, 'restart')}, the last one after: ${last}`
    return { state: 'ready', text: joinParts(address(front).trim(), past) }
  }
  if (status['phase'] === 'Failed') return { state: 'failed', text: message }
  if (status['phase'] === 'Pending') return { state: 'starting', text: message }
  if (object.kind === 'MCPGroup') return groupFinding(object)
  if (status['referenceCount'] !== undefined) return sharedSettingsFinding(status)
  const url = object.spec?.['remoteUrl'] ?? object.spec?.['baseUrl']
  const member = shown.addresses.some(({ backends }) =>
    backends.some(({ name }) => name === object.metadata.name),
  )
  if (typeof url === 'string') {
    return { state: 'ready', text: member ? url : joinParts(url, 'no virtual server uses it yet') }
  }
  return { state: 'ready', text: message }
}

function groupFinding({ status = {}, metadata }: LocalObject): Finding {
  const members = ['serverCount', 'remoteProxyCount', 'entryCount', 'openApiServerCount']
    .map((field) => Number(status[field] ?? 0))
    .reduce((sum, count) => sum + count, 0)
  if (members > 0) return { state: 'ready', text: members === 1 ? '1 member' : `${members} members` }
  return {
    state: 'unused',
    text: `the group has no members; add a server with spec.groupRef.name: ${metadata.name}`,
  }
}

function sharedSettingsFinding(status: Record<string, unknown>): Finding {
  const users = (status['referencingWorkloads'] ?? []) as readonly { kind: string; name: string }[]
  if (users.length === 0) return { state: 'unused', text: 'no resource refers to it' }
  return { state: 'ready', text: `used by ${users.map(({ kind, name }) => `${kind} ${name}`).join(', ')}` }
}

/** Clients connect to the proxy in front of a server. */
function isFront({ workload }: WorkloadView): boolean {
  return workload.metadata.labels?.['app.kubernetes.io/component'] === 'proxy'
}

function address({ port }: WorkloadView): string {
  return port === undefined ? '' : ` on 127.0.0.1:${port}`
}

function joinParts(...parts: readonly (string | undefined)[]): string {
  return parts.filter((part) => part !== undefined && part !== '').join('; ')
}
