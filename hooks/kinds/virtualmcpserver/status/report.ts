/**
 * Merges the running pods' backend reports into the status.
 *
 * The report ConfigMap is returned as a child without data. Each pod writes one key, `<pod>.json` (or `report.json`):
 *
 *   {"observedAt", "configChecksum", "replica", "backends": [{"name", "url", "status", "message", "lastHealthCheck",
 *    "consecutiveFailures", "circuitBreakerState", "circuitLastChanged", "mcpRevision"}]}
 *
 * Reports about another configuration are skipped. An unchanged backend keeps its previous status, so a new member does
 * not clear the health of the other backends. Across reports, a backend's worst status applies, so no pod can hide a
 * problem that another pod reports. Times are not compared, because pod clocks differ. A pod removes its own report
 * when it shuts down, and the other pods remove a killed pod's report (runtime/vmcp/server/status/report.ts). Reports
 * are untrusted data from pods, so every field is checked.
 */
import { byText, type DiscoveredBackend } from '../../../../schemas/index.ts'
import { isExcluded } from './excluded.ts'
import { problemsIn } from './problems.ts'
import { parseEmbeddedJson } from '../../../base/json-bounds.ts'
import { type Fields, fieldsOf, isFields, type KubeObject, listOf } from '../../../base/kube.ts'

export type ReportedStatus = NonNullable<DiscoveredBackend['status']>

/** Statuses, from worst to best. */
const statusOrder: readonly ReportedStatus[] = [
  'unavailable',
  'unauthenticated',
  'degraded',
  'unknown',
  'ready',
]

export interface Reports {
  /** Reports from pods that run the current configuration, keyed by backend name. */
  readonly current: ReadonlyMap<string, DiscoveredBackend>
  /** True when at least one pod reported on the current configuration. */
  readonly fresh: boolean
  /**
   * Problems and their next steps, as reported by all pods, regardless of their configuration. A pod that rejects the
   * current configuration reports the rejection here.
   */
  readonly problems: readonly string[]
}

/** Reads the report ConfigMap. `checksum` is the SHA-256 of the current config.yaml. */
export function readReports(report: KubeObject | undefined, checksum: string): Reports {
  const current = new Map<string, DiscoveredBackend>()
  const all = podReports(report)
  const reports = all.filter((pod) => pod['configChecksum'] === checksum)
  for (const item of reports.flatMap((pod) => listOf(pod['backends'])).filter(isFields)) {
    const backend = backendOf(item)
    if (!backend) continue
    const other = current.get(backend.name)
    current.set(backend.name, other ? worseOf(other, backend) : backend)
  }
  return {
    current,
    fresh: reports.length > 0,
    problems: problemsIn(all),
  }
}

/** Returns the reports from all pods on any configuration, sorted by pod name. */
export function podReports(report: KubeObject | undefined): readonly Fields[] {
  return Object.entries(fieldsOf(report?.['data']))
    .sort(([a], [b]) => byText(a, b))
    .flatMap(([key, text]) => (key.endsWith('.json') && typeof text === 'string' ? [parse(text)] : []))
    .filter((fields) => fields !== undefined)
}

function parse(text: string): Fields | undefined {
  const value = parseEmbeddedJson(text)
  return isFields(value) ? value : undefined
}

/** Parses one backend from a report or a status. Returns undefined if the backend has no name or status. */
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
  return typeof value === 'string' && (statusOrder as readonly string[]).includes(value)
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 && value < 2 ** 31
}

function textMember(item: Fields, key: string, max: number): Fields {
  const value = item[key]
  return typeof value === 'string' && value !== '' ? { [key]: value.slice(0, max) } : {}
}

const timeForm = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/

/** Truncates a timestamp to seconds, as the API server does. */
function timeMember(item: Fields, key: string): Fields {
  const value = item[key]
  if (typeof value !== 'string' || !timeForm.test(value) || Number.isNaN(Date.parse(value))) return {}
  return { [key]: `${value.slice(0, 19)}Z` }
}

function worseOf(a: DiscoveredBackend, b: DiscoveredBackend): DiscoveredBackend {
  return statusOrder.indexOf(b.status ?? 'unknown') < statusOrder.indexOf(a.status ?? 'unknown') ? b : a
}

/** Returns the previous status entries, keyed by backend name. */
export function previousEntries(discoveredBackends: unknown): ReadonlyMap<unknown, Fields> {
  return new Map(
    listOf(discoveredBackends)
      .filter(isFields)
      .map((entry) => [entry['name'], entry]),
  )
}

/** Returns the previous health of an unchanged backend until a pod reports on the current configuration. */
export function previousHealth(
  entry: Fields | undefined,
  url: string,
  authConfigRef: string | undefined,
): DiscoveredBackend | undefined {
  // Only reported health is kept; an initial status is recomputed each time.
  if (!entry || (entry['lastHealthCheck'] === undefined && !isExcluded(entry['message']))) return undefined
  if (entry['url'] !== url || entry['authConfigRef'] !== authConfigRef) return undefined
  return backendOf(entry)
}
