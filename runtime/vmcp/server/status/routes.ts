/**
 * The built-in paths of a virtual server for liveness, readiness, status and backend health. These paths require no
 * authentication and therefore return only names and states.
 * Source: docs/reference/specification/virtual-server.md#endpoints, "Endpoints".
 */
import { GatehouseError } from '../../../../schemas/index.ts'
import { type Exchange, sendJson, type Stage } from '../../../net/index.ts'
import type { BackendState } from '../engine/backend-state.ts'
import type { HealthStatus } from '../../backends/health/monitor.ts'
import type { StatusReport } from './status.ts'

export interface VmcpRouteParts {
  /** Returns the reason why the server is not ready. Returns undefined if the server is ready. */
  readonly notReady: () => string | undefined | Promise<string | undefined>
  /** Returns notes for operators, which `/readyz` includes. */
  readonly notes: () => readonly string[]
  readonly mode: 'static' | 'dynamic'
  readonly status: () => StatusReport
  /** Returns the states of the backends, sorted by name. */
  readonly backends: () => readonly BackendState[]
  readonly monitoring: () => boolean
}

const noStore = { 'cache-control': 'no-store' }

/** Returns the stage for a built-in path. Returns undefined for all other paths. */
export function builtInRoute(parts: VmcpRouteParts, path: string): Stage<Exchange> | undefined {
  switch (path) {
    case '/health':
    case '/ping':
      return ({ res }) => sendJson(res, 200, { status: 'ok' })
    case '/readyz':
      return async ({ res }) => {
        const reason = await parts.notReady()
        const notes = parts.notes()
        if (reason === undefined)
          sendJson(res, 200, {
            status: 'ready',
            mode: parts.mode,
            ...(notes.length > 0 ? { notes } : {}),
          })
        else sendJson(res, 503, { status: 'not_ready', mode: parts.mode, reason })
      }
    case '/status':
      return readOnly(({ res }) => sendJson(res, 200, parts.status(), noStore))
    case '/api/backends/health':
      return readOnly(({ res }) => sendJson(res, 200, healthReport(parts), noStore))
    default:
      return undefined
  }
}

function readOnly(stage: (exchange: Exchange) => void): Stage<Exchange> {
  return (exchange) => {
    const { method } = exchange.req
    if (method !== 'GET' && method !== 'HEAD') {
      throw new GatehouseError('METHOD_NOT_ALLOWED', { headers: { allow: 'GET, HEAD' } })
    }
    stage(exchange)
  }
}

function healthReport(parts: VmcpRouteParts): unknown {
  const all = parts.backends()
  const count = (status: HealthStatus): number => all.filter(({ health }) => health.status === status).length
  return {
    monitoring_enabled: parts.monitoring(),
    summary: {
      total: all.length,
      healthy: count('healthy'),
      degraded: count('degraded'),
      unhealthy: count('unhealthy'),
      unknown: count('unknown'),
      unauthenticated: count('unauthenticated'),
    },
    backends: Object.fromEntries(all.map((backend) => [backend.name, describe(backend)])),
  }
}

function describe({ health, lists, signInAt }: BackendState): Record<string, unknown> {
  return {
    status: health.status,
    consecutive_failures: health.consecutiveFailures,
    last_check_time: time(health.lastCheckAt),
    last_error_category: health.lastErrorCategory,
    last_transition_time: time(health.lastTransitionAt),
    circuit_state: health.circuit?.state,
    circuit_last_changed:
      health.circuit && health.circuit.changedAt > 0 ? time(health.circuit.changedAt) : undefined,
    lists_stale_since: time(lists.staleSince),
    sign_in_url: signInAt,
    items_repaired: lists.repaired,
    items_left_out: lists.leftOut,
  }
}

function time(ms: number | undefined): string | undefined {
  return ms === undefined ? undefined : new Date(ms).toISOString()
}
