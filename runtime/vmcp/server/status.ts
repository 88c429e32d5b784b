/**
 * What `/status`, `/readyz` and the health endpoints say. Names and states only: no addresses, no error texts.
 * Source: docs/specification/virtual-server.md#status (status.discoveredBackends); names in snake case, backends sorted.
 */
import type { BackendState } from '../backends/backend-state.ts'
import type { Catalog } from '../catalog/catalog.ts'
import type { BackendHealth } from '../health/monitor.ts'

export interface StatusReport {
  readonly name: string
  readonly group_ref: string
  readonly version: string
  readonly healthy: boolean
  readonly sessions: number
  readonly backends: readonly BackendStatus[]
  /**
   * Backends that are excluded, and why; names in settings that no backend has; lists that are stale; names that could not be offered as they stand, of the
   * catalogs in use; features that do less than they should.
   */
  readonly problems: readonly string[]
}

export interface BackendStatus {
  readonly name: string
  readonly health: BackendHealth['status']
  readonly transport: string
  readonly auth_type: string
  readonly mcp_revision?: string
}

export function statusReport(options: {
  readonly name: string
  readonly group: string
  readonly version: string
  readonly sessions: number
  /** Sorted by name. */
  readonly backends: readonly BackendState[]
  readonly catalogs: Iterable<Catalog>
  readonly problems: Iterable<string>
}): StatusReport {
  const backends = options.backends.map(
    ({ name, health, transport, authType, revision }): BackendStatus => ({
      name,
      health: health.status,
      transport,
      auth_type: authType,
      ...(revision === undefined ? {} : { mcp_revision: revision }),
    }),
  )
  const problems = new Set([
    ...options.problems,
    ...options.backends.flatMap(exclusion),
    ...options.backends.flatMap(staleLists),
    ...[...options.catalogs].flatMap((catalog) => catalog.problems.map(({ message }) => message)),
  ])
  return {
    name: options.name,
    group_ref: options.group,
    version: options.version,
    healthy: backends.some(({ health }) => health === 'healthy' || health === 'degraded'),
    sessions: options.sessions,
    backends,
    problems: [...problems].sort().slice(0, 200),
  }
}

function exclusion({ name, excluded }: BackendState): string[] {
  return excluded ? [`backend ${name} is excluded: ${excluded.join('; ')}`] : []
}

function staleLists({ name, lists }: BackendState): string[] {
  if (lists.staleSince === undefined) return []
  const since = new Date(lists.staleSince).toISOString()
  return [`backend ${name}: its lists could not be read again since ${since}; the last ones stay in use`]
}
