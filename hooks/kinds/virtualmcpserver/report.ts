/**
 * Merges what the running pods report about their backends into the status.
 *
 * The report ConfigMap is returned as a child without data; each pod writes one key, `<pod>.json` (or `report.json`):
 *
 *   {"observedAt", "configChecksum", "replica", "backends": [{"name", "url", "status", "message", "lastHealthCheck",
 *    "consecutiveFailures", "circuitBreakerState", "circuitLastChanged", "mcpRevision"}]}
 *
 * A report about another configuration than the present one is passed over, but what the status already knows about an
 * unchanged backend is kept meanwhile, so that a new member does not blank the health of the others. With several pods
 * the worst word about a backend counts. Reports are data of a pod: every member is checked.
 */
import type { DiscoveredBackend } from '../../../schemas/index.ts'
import { type Fields, fieldsOf, isFields, type KubeObject, listOf } from '../../kube.ts'

export type BackendStatus = NonNullable<DiscoveredBackend['status']>

/** Worst first. */
const order: readonly BackendStatus[] = ['unavailable', 'unauthenticated', 'degraded', 'unknown', 'ready']

export interface Reports {
  /** What the pods that run the present configuration say, by backend name. */
  readonly current: ReadonlyMap<string, DiscoveredBackend>
  /** True when at least one pod reported on the present configuration. */
  readonly fresh: boolean
}

/** Reads the report ConfigMap; `checksum` is the SHA-256 of the present config.yaml. */
export function readReports(report: KubeObject | undefined, checksum: string): Reports {
  const current = new Map<string, DiscoveredBackend>()
  let fresh = false
  const data = Object.entries(fieldsOf(report?.['data'])).sort(([a], [b]) => (a < b ? -1 : 1))
  for (const [key, text] of data) {
    if (!key.endsWith('.json') || typeof text !== 'string') continue
    const one = parse(text)
    if (one?.['configChecksum'] !== checksum) continue
    fresh = true
    for (const item of listOf(one['backends']).filter(isFields)) {
      const backend = backendOf(item)
      if (!backend) continue
      const other = current.get(backend.name)
      current.set(backend.name, other ? worse(other, backend) : backend)
    }
  }
  return { current, fresh }
}

function parse(text: string): Fields | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return isFields(value) ? value : undefined
  } catch {
    return undefined
  }
}

function backendOf(item: Fields): DiscoveredBackend | undefined {
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

function isStatus(value: unknown): value is BackendStatus {
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
  // Only a report sets lastHealthCheck: an initial guess is made anew each time.
  if (!entry || entry['lastHealthCheck'] === undefined) return undefined
  if (entry['url'] !== url || entry['authConfigRef'] !== authConfigRef) return undefined
  return backendOf(entry)
}
