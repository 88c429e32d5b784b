/** Counts events. Gauges that reflect a state are read from the state's owner at each scrape. */
import type { Metrics } from '../telemetry/metrics.ts'
import type { EventFields, EventType } from './fields.ts'
import type { Events } from './stream.ts'

type Counters = {
  readonly [T in EventType]?: (metrics: Metrics, fields: EventFields[T], server: string) => void
}

const counters: Counters = {
  lists_failed: (metrics, { backend }) => metrics.listReadFailures(1, backendLabel(backend)),
  list_problem(metrics, { backend, resolved, err }) {
    if (!resolved && err !== undefined) metrics.listReadFailures(1, backendLabel(backend))
  },
  items_malformed(metrics, { backend, repaired, left_out }) {
    if (repaired > 0) metrics.malformedItems(repaired, { ...backendLabel(backend), action: 'repaired' })
    if (left_out > 0) metrics.malformedItems(left_out, { ...backendLabel(backend), action: 'left_out' })
  },
  pin_refused: (metrics, { backend, reason }) => metrics.pinRefusals(1, { ...backendLabel(backend), reason }),
  backend_era: (metrics, { backend, era }) =>
    metrics.revisionReclassifications(1, { ...backendLabel(backend), 'mcp.protocol.revision': era }),
  config_reloaded: (metrics) => metrics.configReloads(1, { outcome: 'success' }),
  config_refused: (metrics) => metrics.configReloads(1, { outcome: 'failure' }),
  token_obtained: (metrics, { strategy }) => metrics.tokenExchanges(1, { strategy, outcome: 'success' }),
  token_failed: (metrics, { strategy }) => metrics.tokenExchanges(1, { strategy, outcome: 'failure' }),
  authorization_server: (metrics, { action, outcome, upstream }) =>
    metrics.authServerEvents(1, { action, outcome, upstream }),
  audit_lost: (metrics, { lines }) => metrics.auditLinesLost(lines, {}),
  policy_engine_failed: (metrics, _fields, server) => metrics.policyEngineFailures(1, { server }),
}

/** Returns the label for metrics about one backend. */
export function backendLabel(backend: string): { 'target.workload_name': string } {
  return { 'target.workload_name': backend }
}

/** Starts counting. `server` is the server's name, which is used in metrics that are not about a backend. */
export function countEvents(events: Events, metrics: Metrics, server: string): void {
  // Starts counters at 0. Otherwise, the rate of a counter would not include the event with which the counter first
  // appears.
  metrics.auditLinesLost(0, {})
  metrics.configReloads(0, { outcome: 'success' })
  metrics.configReloads(0, { outcome: 'failure' })
  events.listen(({ type, fields }) => {
    const count = counters[type] as
      | ((metrics: Metrics, fields: EventFields[EventType], server: string) => void)
      | undefined
    count?.(metrics, fields, server)
    metrics.events(1, { type })
  })
  metrics.problems(function* countProblems() {
    for (const [type, count] of Map.groupBy(events.problems(), (problem) => problem.type))
      yield [count.length, { type }]
  })
}
