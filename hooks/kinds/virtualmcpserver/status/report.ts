/**
 * Merges what the running pods report about their backends into the status.
 *
 * The report ConfigMap is returned as a child without data; each pod writes one key, `<pod>.json` (or `report.json`):
 *
 *   {"observedAt", "configChecksum", "replica", "backends": [{"name", "url", "status", "message", "lastHealthCheck",
 *    "consecutiveFailures", "circuitBreakerState", "circuitLastChanged", "mcpRevision"}]}
 *
 * A report about another configuration than the present one is skipped, but what the status already knows about an
 * unchanged backend stays meanwhile, so that a new member does not blank the health of the others. With several pods
 * the worst word about a backend counts. A pod that was killed leaves its report behind: what is much older than the
 * newest report does not count. Reports are data of a pod: every member is checked.
 */
import { byText, type DiscoveredBackend } from '../../../../schemas/index.ts'
import { isExcluded } from './excluded.ts'
import { problemsIn } from './problems.ts'
import { jsonIn } from '../../../json-bounds.ts'
import { type Fields, fieldsOf, isFields, type KubeObject, listOf } from '../../../kube.ts'

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

/** Reports that a pod may miss before it is taken for dead. */
const missedReports = 4
/** Clocks of nodes differ; a pod with a short interval is not dead because of that. */
const leastAgeMs = 60_000

/** Reads the report ConfigMap; `checksum` is the SHA-256 of the present config.yaml, `intervalMs` how often pods report. */
export function readReports(report: KubeObject | undefined, checksum: string, intervalMs: number): Reports {
  const current = new Map<string, DiscoveredBackend>()
  const maxAgeMs = Math.max(missedReports * intervalMs, leastAgeMs)
  const reports = presentReports(report, checksum, maxAgeMs)
  for (const item of reports.flatMap((one) => listOf(one['backends'])).filter(isFields)) {
    const backend = backendOf(item)
    if (!backend) continue
    const other = current.get(backend.name)
    current.set(backend.name, other ? worse(other, backend) : backend)
  }
  return {
    current,
    fresh: reports.length > 0,
    problems: problemsIn(presentReports(report, undefined, maxAgeMs)),
  }
}

/**
 * What pods say about the present configuration, by name of pod, without the pods that are gone. `checksum` undefined: about
 * whatever configuration.
 */
export function presentReports(
  report: KubeObject | undefined,
  checksum: string | undefined,
  maxAgeMs: number,
): readonly Fields[] {
  const reports = Object.entries(fieldsOf(report?.['data']))
    .sort(([a], [b]) => byText(a, b))
    .flatMap(([key, text]) => (key.endsWith('.json') && typeof text === 'string' ? [parse(text)] : []))
    .filter((one) => one !== undefined)
    .filter((one) => checksum === undefined || one['configChecksum'] === checksum)
  const newest = Math.max(...reports.map(observedAt))
  // One without a time is taken for the oldest: it counts only where no pod tells the time.
  return reports.filter((one) => newest === -Infinity || newest - observedAt(one) <= maxAgeMs)
}

function observedAt({ observedAt: time }: Fields): number {
  const ms = typeof time === 'string' && timeForm.test(time) ? Date.parse(time) : Number.NaN
  return Number.isNaN(ms) ? -Infinity : ms
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
