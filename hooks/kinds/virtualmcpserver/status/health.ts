/**
 * Computes the phase, the backend list and the backend count in a virtual server's status.
 *
 * Without a ready pod, the last report is meaningless, so the state of the pods is checked first. With a ready pod, the
 * backends determine the phase: it is Ready when all backends are routable or the group is empty, Degraded when only
 * some or none are routable, and Pending while the state of every backend is unknown. A stuck rollout is Degraded while
 * older pods still serve requests. Source: docs/reference/specification/virtual-server.md#status, "status"
 * (backendCount is ready plus unauthenticated).
 */
import { canonicalJson, type DiscoveredBackend } from '../../../../schemas/index.ts'
import type { WorkloadState } from '../../../sync/workload-state.ts'
import { stuckMessage } from '../../../sync/progress.ts'
import { type Fields, definedFields } from '../../../base/kube.ts'
import type { ResolvedBackend } from '../config/backends.ts'
import { backendOf, type ReportedStatus, previousEntries, previousHealth, type Reports } from './report.ts'

/** Returns the status of every backend, sorted by name. */
export function backendStatuses(
  backends: readonly ResolvedBackend[],
  reports: Reports,
  previous: unknown,
  authTypeOf: (backend: ResolvedBackend) => string | undefined,
): readonly DiscoveredBackend[] {
  const entries = previousEntries(previous)
  return backends.map((resolved) => {
    const url = resolved.backend?.url ?? resolved.member?.url
    const known = resolved.backend && knownHealth(resolved, reports, entries.get(resolved.name))
    return definedFields({
      ...(known ?? initial(resolved)),
      name: resolved.name,
      url,
      authType: authTypeOf(resolved),
      authConfigRef: resolved.authConfigRef,
    })
  })
}

function knownHealth(
  { name, backend, authConfigRef }: ResolvedBackend,
  reports: Reports,
  previous: Fields | undefined,
): DiscoveredBackend | undefined {
  const current = reports.current.get(name)
  if (current && (current.url === undefined || current.url === backend?.url))
    return withoutHeartbeat(current, previous)
  return reports.fresh ? undefined : previousHealth(previous, backend?.url ?? '', authConfigRef)
}

/** Maximum age of `lastHealthCheck` in a status while nothing else changes. */
const heartbeatMs = 5 * 60_000

/**
 * Keeps the old check time when a report differs only in the time. A status write triggers a sync of every kind that
 * reads virtual servers, so the time is copied only every `heartbeatMs`.
 */
function withoutHeartbeat(current: DiscoveredBackend, previous: Fields | undefined): DiscoveredBackend {
  const before = previous && backendOf(previous)
  if (!before?.lastHealthCheck || !current.lastHealthCheck) return current
  const { lastHealthCheck: was, url: _a, ...old } = before
  const { lastHealthCheck: now, url: _b, ...fresh } = current
  const passed = Date.parse(now) - Date.parse(was)
  const same = canonicalJson(old) === canonicalJson(fresh) && passed >= 0 && passed < heartbeatMs
  return same ? { ...current, lastHealthCheck: was } : current
}

/** Returns the status before the first health check, derived from the member's phase. */
function initial(resolved: ResolvedBackend): Pick<DiscoveredBackend, 'status' | 'message'> {
  if (resolved.failure) return { status: 'unavailable', message: resolved.failure.message.slice(0, 1024) }
  const phase = resolved.member?.phase
  if (resolved.member && !resolved.backend) {
    return phase === 'Failed'
      ? { status: 'unavailable', message: 'The member has failed' }
      : { status: 'unknown', message: 'The member has no address yet' }
  }
  return { status: statusOfPhase[phase ?? ''] ?? 'unknown' }
}

const statusOfPhase: Readonly<Record<string, ReportedStatus>> = {
  Ready: 'ready',
  Degraded: 'ready',
  Valid: 'ready',
  Failed: 'unavailable',
  Terminating: 'unavailable',
  Stopped: 'unavailable',
}

export function routableCount(backends: readonly DiscoveredBackend[]): number {
  return backends.filter(({ status }) => status === 'ready' || status === 'unauthenticated').length
}

export interface Phase {
  readonly phase: 'Pending' | 'Ready' | 'Degraded' | 'Failed'
  readonly message: string
  readonly ready: boolean
  readonly reason: string
}

/** Returns the phase and the Ready condition when no reference is broken. */
export function phaseOf(pods: WorkloadState | undefined, backends: readonly DiscoveredBackend[]): Phase {
  if (!pods || pods.availableReplicas === 0) return withoutPods(pods)
  const found = ofBackends(backends)
  if (pods.failure === undefined) return found
  return { ...found, phase: 'Degraded', message: `${stuckMessage(pods.failure)}. ${found.message}` }
}

function ofBackends(backends: readonly DiscoveredBackend[]): Phase {
  const routable = routableCount(backends)
  const total = backends.length
  if (total === 0)
    return ready('Ready', 'DeploymentReady', 'Virtual MCP server is running; the group is empty')
  if (routable === total) return ready('Ready', 'AllBackendsRoutable', `All ${total} backends are routable`)
  if (routable > 0) {
    return ready('Degraded', 'SomeBackendsUnhealthy', `${routable} of ${total} backends are routable`)
  }
  if (backends.every(({ status }) => status === 'unknown')) {
    return notReady('Pending', 'BackendsPending', 'No backend has been checked yet')
  }
  return notReady('Degraded', 'NoRoutableBackends', `None of ${total} backends is routable`)
}

function withoutPods(pods: WorkloadState | undefined): Phase {
  if (pods?.failure !== undefined) return notReady('Failed', 'DeploymentFailed', pods.failure)
  if (!pods) return notReady('Pending', 'DeploymentNotReady', 'No pods found for Virtual MCP server')
  if (pods.replicas === 0) {
    return notReady('Pending', 'DeploymentNotReady', 'Virtual MCP server is stopped: it has no replicas')
  }
  return notReady('Pending', 'DeploymentNotReady', 'Virtual MCP server is starting')
}

function ready(phase: Phase['phase'], reason: string, message: string): Phase {
  return { phase, ready: true, reason, message }
}

function notReady(phase: Phase['phase'], reason: string, message: string): Phase {
  return { phase, ready: false, reason, message }
}
