/**
 * Merges what the running pods report about their backends into the status.
 *
 * The report ConfigMap is returned as a child without data; each pod writes one key, `<pod>.json` (or `report.json`):
 *
 *   {"observedAt", "configChecksum", "replica", "backends": [{"name", "url", "status", "message", "lastHealthCheck",
 *    "consecutiveFailures", "circuitBreakerState", "circuitLastChanged", "mcpRevision"}]}
 *
 * Reports about a configuration other than the current one are skipped. Meanwhile, an unchanged backend keeps its
 * previous status, so a new member does not clear the health of the other backends. All reports in the ConfigMap
 * count, and the worst status of a backend wins, so no pod can hide a problem that another pod reports. Clocks of
 * pods differ, so times in reports are not compared: a pod removes its own report when it ends, and the other pods
 * remove the report of a killed pod (runtime/vmcp/server/status/report.ts). Reports are untrusted data from pods: every
 * member is checked.
 */
import { byText, type DiscoveredBackend } from '../../../../schemas/index.ts'
import { isExcluded } from './excluded.ts'
import { problemsIn } from './problems.ts'
import { jsonIn } from '../../../base/json-bounds.ts'
import { type Fields, fieldsOf, isFields, type KubeObject, listOf } from '../../../base/kube.ts'

export type ReportedStatus = NonNullable<DiscoveredBackend['status']>

/** Worst first. */
const order: readonly ReportedStatus[] = ['unavailable', 'unauthenticated', 'degraded', 'unknown', 'ready']

export interface Reports {
  /** What the pods that run the present configuration say, by backend name. */
  readonly current: ReadonlyMap<string, DiscoveredBackend>
  /** True when at least one pod reported on the present configuration. */
  readonly fresh: boolean
  /** What pods of whatever configuration say is wrong, with the next step: one that refuses the present one says so. */
  readonly problems: readonly string[]
}

/** Reads the report ConfigMap; `checksum` is the SHA-256 of the current config.yaml. */
export function readReports(report: KubeObject | undefined, checksum: string): Reports {
  const current = new Map<string, DiscoveredBackend>()
  const all = podReports(report)
  const reports = all.filter((one) => one['configChecksum'] === checksum)
  for (const item of reports.flatMap((one) => listOf(one['backends'])).filter(isFields)) {
    const backend = backendOf(item)
    if (!backend) continue
    const other = current.get(backend.name)
    current.set(backend.name, other ? worse(other, backend) : backend)
  }
  return {
    current,
    fresh: reports.length > 0,
    problems: problemsIn(all),
  }
}

/** Returns the reports of all pods about any configuration, sorted by pod name. */
export function podReports(report: KubeObject | undefined): readonly Fields[] {
  return Object.entries(fieldsOf(report?.['data']))
    .sort(([a], [b]) => byText(a, b))
    .flatMap(([key, text]) => (key.endsWith('.json') && typeof text === 'string' ? [parse(text)] : []))
    .filter((one) => one !== undefined)
}

function parse(text: string): Fields | undefined {
  const value = jsonIn(text)
  return isFields(value) ? value : undefined
}

/** One backend of a report or of a status, with every member checked; undefined when it has no name or no status. */
export function backendOf(item: Fields): DiscoveredBackend | undefined {
  const { name, url, status } = item
  if (typeof name !== 'string' || name === '' || !isStatus(status)) return undefined
  const failures = item['consecutiveFailures']
  const circuit = item['circuitBreakerState']
  return {
    name,
    ...(typeof url === 'string' && { url }),
    status,
    ...textMember(item, 'message', 1024),
    ...timeMember(item, 'lastHealthCheck'),
    ...(isCount(failures) && { consecutiveFailures: failures }),
    ...((circuit === 'closed' || circuit === 'open' || circuit === 'half-open') && {
      circuitBreakerState: circuit,
    }),
    ...timeMember(item, 'circuitLastChanged'),
    ...textMember(item, 'mcpRevision', 64),
  }
}

function isStatus(value: unknown): value is ReportedStatus {
  return typeof value === 'string' && (order as readonly string[]).includes(value)
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 && value < 2 ** 31
}

function textMember(item: Fields, key: string, max: number): Fields {
  const value = item[key]
  return typeof value === 'string' && value !== '' ? { [key]: value.slice(0, max) } : {}
}

const timeForm = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/

/** Timestamps without fractions, as the API server stores them. */
function timeMember(item: Fields, key: string): Fields {
  const value = item[key]
  if (typeof value !== 'string' || !timeForm.test(value) || Number.isNaN(Date.parse(value))) return {}
  return { [key]: `${value.slice(0, 19)}Z` }
}

function worse(a: DiscoveredBackend, b: DiscoveredBackend): DiscoveredBackend {
  return order.indexOf(b.status ?? 'unknown') < order.indexOf(a.status ?? 'unknown') ? b : a
}

/** The entries of the present status by backend name. */
export function previousEntries(discoveredBackends: unknown): ReadonlyMap<unknown, Fields> {
  return new Map(
    listOf(discoveredBackends)
      .filter(isFields)
      .map((entry) => [entry['name'], entry]),
  )
}

/** Keeps an unchanged backend's known health while no pod has reported on the present configuration. */
export function remembered(
  entry: Fields | undefined,
  url: string,
  authConfigRef: string | undefined,
): DiscoveredBackend | undefined {
  // Only what a report said is remembered: an initial guess is made again each time.
  if (!entry || (entry['lastHealthCheck'] === undefined && !isExcluded(entry['message']))) return undefined
  if (entry['url'] !== url || entry['authConfigRef'] !== authConfigRef) return undefined
  return backendOf(entry)
}
