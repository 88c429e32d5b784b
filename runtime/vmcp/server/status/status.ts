/**
 * Responses of `/status`, `/readyz` and the health endpoints. The responses contain names, states and causes, but no
 * addresses. A backend's explanation is short and masked. The explanation appears in a separate member (`detail`) or at
 * the end of a message.
 * Source: docs/reference/specification/virtual-server.md#status (status.discoveredBackends); names in snake case,
 * backends sorted.
 */
import { byText } from '../../../../schemas/index.ts'
import type { VmcpConfig } from '../../../config/index.ts'
import {
  type BackendSummary,
  causeFix,
  causeTitle,
  type Events,
  observedBackend,
  type OpenProblem,
  type RecentFailure,
  summarizeBackends,
  visibleText,
} from '../../../observe/index.ts'
import type { BackendState } from '../engine/backend-state.ts'
import type { Catalog } from '../../catalog/catalog.ts'
import { countsOf, type DriftedPage, type PageDriftCounts } from '../../features/apps/page-drift.ts'
import type { PinKind } from '../../model/catalog/pinning.ts'
import type { LockState, PinReport } from '../../catalog/pinning/report.ts'
import type { BackendHealth } from '../../backends/health/monitor.ts'

export interface StatusReport {
  readonly name: string
  readonly group_ref: string
  readonly version: string
  /**
   * True if requests succeed. A backend must be up and, with `partialFailureMode: fail`, no backend may be unavailable.
   */
  readonly healthy: boolean
  readonly sessions: number
  /** Summary of the backends that are down, with a count for each cause. Absent if no backend is down. */
  readonly summary?: string
  /** Backends that are down, grouped by cause, with the largest group first. Absent if no backend is down. */
  readonly down?: BackendSummary['groups']
  readonly backends: readonly BackendStatus[]
  /**
   * All problems. These are excluded backends, unknown names in settings, stale lists, naming problems in current
   * catalogs, and degraded features.
   */
  readonly problems: readonly string[]
  /** Tools in the current catalogs that have a shorter name for clients. Absent if no tool has a shorter name. */
  readonly tool_aliases?: readonly { readonly name: string; readonly alias: string }[]
  /** Open problems with their start times and fixes, oldest first. */
  readonly problem_details: readonly ProblemStatus[]
  /** Failures of individual calls in the last hour, with their fixes, latest first. */
  readonly recent_failures: readonly FailureStatus[]
}

export interface FailureStatus {
  readonly type: string
  readonly backend?: string
  readonly reason?: string
  readonly message: string
  /** The backend's own explanation. Absent if the backend sent no explanation. */
  readonly detail?: string
  readonly fix: string
  readonly count: number
  readonly first: string
  readonly last: string
}

export interface ProblemStatus {
  readonly type: string
  readonly backend?: string
  readonly since: string
  readonly message: string
  readonly fix: string
}

export interface BackendStatus {
  readonly name: string
  readonly health: BackendHealth['status']
  readonly transport: string
  readonly auth_type: string
  readonly mcp_revision?: string
  /** Time at which the health last changed. Absent before the first change. */
  readonly since?: string
  readonly consecutive_failures: number
  /** The most recent error, regardless of its age. */
  readonly last_error?: {
    readonly category: string
    readonly message: string
    /** The backend's own explanation. Absent if the backend sent no explanation. */
    readonly detail?: string
    /** Exit code of the backend's program. Absent if the program did not exit. */
    readonly exit_code?: number
    /** Status of the backend's HTTP response. Absent if there was no response. */
    readonly http_status?: number
    /** The next step for the operator. */
    readonly fix: string
    readonly at: string
  }
  /** State of the circuit breaker. Absent if the breaker is disabled. */
  readonly circuit?: { readonly state: string; readonly since?: string }
  readonly era: string
  /** Number of client requests since the backend was set up. */
  readonly calls: number
  readonly calls_failed: number
  /** Latency in the last five to ten minutes. Absent if there were no calls. */
  readonly latency_ms?: { readonly p50: number; readonly p95: number }
  /** The address where the user must sign in. Absent if no sign-in is required. */
  readonly sign_in_url?: string
  /** Result of comparing the backend's items with the approved items. Absent while pinning is disabled. */
  readonly pinning?: PinningStatus
}

export interface PinningStatus {
  readonly lock: LockState
  readonly pinned: number
  readonly new: number
  readonly changed: number
  readonly removed: number
  /** The first items that differ. */
  readonly drift: readonly PinDriftStatus[]
  /** Pages that clients have read and that differ. Absent if no lock of the backend contains pages. */
  readonly pages?: PageDriftCounts & { readonly drift: readonly DriftedPage[] }
}

export interface PinDriftStatus {
  readonly kind: PinKind
  readonly name: string
  readonly state: string
  readonly parts: readonly string[]
  readonly digest: string
}

export interface StatusReportParts {
  readonly config: Pick<VmcpConfig, 'name' | 'groupRef' | 'operational'>
  readonly version: string
  readonly sessions: number
  /** The states of the backends, sorted by name. */
  readonly backends: readonly BackendState[]
  readonly catalogs: readonly Catalog[]
  readonly problems: Iterable<string>
  /** The source of open problems and recent failures. */
  readonly events: Pick<Events, 'problems' | 'recent'>
}

export function statusReport(options: StatusReportParts): StatusReport {
  const open = options.events.problems()
  const backends = options.backends.map(
    ({ name, health, transport, authType, revision, era, calls, pins, pages, signInAt }): BackendStatus => ({
      name,
      health: health.status,
      transport,
      auth_type: authType,
      ...(revision === undefined ? {} : { mcp_revision: revision }),
      ...healthStatus(name, health),
      era,
      calls: calls.calls,
      calls_failed: calls.failed,
      ...(calls.latencyMs ? { latency_ms: calls.latencyMs } : {}),
      ...(signInAt === undefined ? {} : { sign_in_url: signInAt }),
      ...pinningStatus(pins, pages),
    }),
  )
  const problems = new Set([
    ...options.problems,
    ...open.map(({ message }) => message),
    ...options.backends.flatMap(exclusion),
    ...options.backends.flatMap(staleLists),
    ...options.catalogs.flatMap((catalog) => catalog.problems.map(({ message }) => message)),
  ])
  return {
    name: options.config.name,
    group_ref: options.config.groupRef,
    version: options.version,
    healthy: isHealthy(options),
    sessions: options.sessions,
    ...downStatus(options.backends),
    backends,
    problems: [...problems].sort().slice(0, 200),
    ...aliasStatus(options.catalogs),
    problem_details: open.slice(0, 200).map(problemStatus),
    recent_failures: options.events.recent().map(failureStatus),
  }
}

function downStatus(backends: readonly BackendState[]): Pick<StatusReport, 'summary' | 'down'> {
  const { text, groups } = summarizeBackends(backends.map(observedBackend))
  return text === undefined ? {} : { summary: text, down: groups }
}

function isHealthy({ backends, config }: StatusReportParts): boolean {
  const { partialFailureMode } = config.operational.failureHandling
  const available = backends.filter(isAvailable)
  const isUp = available.some(({ health: { status } }) => status === 'healthy' || status === 'degraded')
  return isUp && (partialFailureMode === 'best_effort' || available.length === backends.length)
}

function isAvailable({ excluded, health: { status, circuit } }: BackendState): boolean {
  return !excluded && status !== 'unhealthy' && status !== 'unauthenticated' && circuit?.state !== 'open'
}

function aliasStatus(catalogs: readonly Catalog[]): Pick<StatusReport, 'tool_aliases'> {
  const found = new Map(catalogs.flatMap(({ aliases }) => [...aliases.nameByAlias]))
  if (found.size === 0) return {}
  const rows = [...found].map(([alias, name]) => ({ name: visibleText(name), alias: visibleText(alias) }))
  return { tool_aliases: rows.sort((a, b) => byText(a.name, b.name)).slice(0, 200) }
}

function problemStatus({ type, backend, since, message, fix }: OpenProblem): ProblemStatus {
  return { type, ...(backend === undefined ? {} : { backend }), since: time(since), message, fix }
}

function failureStatus({
  type,
  backend,
  reason,
  message,
  detail,
  fix,
  count,
  first,
  last,
}: RecentFailure): FailureStatus {
  return {
    type,
    ...(backend === undefined ? {} : { backend }),
    ...(reason === undefined ? {} : { reason: visibleText(reason) }),
    message,
    ...(detail === undefined ? {} : { detail }),
    fix,
    count,
    first: time(first),
    last: time(last),
  }
}

const maxDrift = 50

function pinningStatus(
  report: PinReport | undefined,
  pages: BackendState['pages'],
): Pick<BackendStatus, 'pinning'> {
  if (!report) return {}
  const { lock, counts, drift } = report
  const named = drift.slice(0, maxDrift).map(({ kind, name, state, parts, digest }) => ({
    kind,
    name: visibleText(name),
    state,
    parts,
    digest,
  }))
  const shownPages = pages && { ...countsOf(pages), drift: pages.slice(0, maxDrift) }
  return { pinning: { lock, ...counts, drift: named, ...(shownPages && { pages: shownPages }) } }
}

function healthStatus(name: string, health: BackendState['health']) {
  const { lastTransitionAt, consecutiveFailures, lastError, circuit } = health
  return {
    ...(lastTransitionAt === undefined ? {} : { since: time(lastTransitionAt) }),
    consecutive_failures: consecutiveFailures,
    ...(lastError
      ? {
          last_error: {
            category: lastError.category,
            message: causeTitle(lastError),
            ...(lastError.detail === undefined ? {} : { detail: lastError.detail }),
            ...(lastError.exitCode === undefined ? {} : { exit_code: lastError.exitCode }),
            ...(lastError.httpStatus === undefined ? {} : { http_status: lastError.httpStatus }),
            fix: causeFix(lastError, name),
            at: time(lastError.at),
          },
        }
      : {}),
    ...(circuit
      ? {
          circuit: {
            state: circuit.state,
            ...(circuit.changedAt > 0 ? { since: time(circuit.changedAt) } : {}),
          },
        }
      : {}),
  }
}

function time(ms: number): string {
  return new Date(ms).toISOString()
}

function exclusion({ name, excluded }: BackendState): string[] {
  return excluded ? [`backend ${name} is excluded: ${excluded.join('; ')}`] : []
}

function staleLists({ name, lists }: BackendState): string[] {
  if (lists.staleSince === undefined) return []
  const since = new Date(lists.staleSince).toISOString()
  return [`backend ${name}: its lists have been unreadable since ${since}; the previous lists stay in use`]
}
