/**
 * The one table of metrics of all programs. Documentation, alert rules and dashboards are generated from it, and each
 * program takes its names from it.
 */
import { HOOKS_METRICS, PROCESS_METRICS, PROXY_METRICS } from './programs.ts'
import type { MetricRow } from './row.ts'
import { SERVER_METRICS } from './server.ts'

export { type Alert, ALERTS, runbookPath } from './alerts.ts'
export { processSamples, processText } from './process.ts'
export { HOOKS_METRICS, PROCESS_METRICS, PROXY_METRICS } from './programs.ts'
export { type MetricRow, prometheusName } from './row.ts'
export { DURATION_BOUNDS, SERVER_METRICS } from './server.ts'
export { histogramText, type HistogramSample, METRICS_TYPE, metricText, type Sample } from './text.ts'

export type Program = 'vmcp' | 'proxy' | 'authserver' | 'hooks'

/** Families that the authorization server adds to the page of its host. */
const AUTHSERVER = ['authServerSecretUses', 'authServerEvents'] as const

/** Metrics that each program serves. The embedded authorization server serves its own on the page of its host. */
export const PROGRAM_METRICS: Readonly<Record<Program, readonly MetricRow[]>> = {
  vmcp: [...Object.values(SERVER_METRICS), ...Object.values(PROCESS_METRICS)],
  proxy: [
    ...Object.values(PROXY_METRICS),
    SERVER_METRICS.authServerSecretUses,
    SERVER_METRICS.authServerEvents,
    ...Object.values(PROCESS_METRICS),
  ],
  authserver: AUTHSERVER.map((name) => SERVER_METRICS[name]),
  hooks: [...Object.values(HOOKS_METRICS), ...Object.values(PROCESS_METRICS)],
}
