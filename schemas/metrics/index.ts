/**
 * The table of all programs' metrics. The generators derive documentation, alert rules and dashboards from this table,
 * and each program takes its metric names from it.
 */
import { attachMetrics } from './attach.ts'
import { hooksMetrics, processMetrics, proxyMetrics } from './programs.ts'
import type { MetricRow } from './row.ts'
import { serverMetrics } from './server.ts'

export { type Alert, alertRules, runbookPath } from './alerts.ts'
export { attachMetrics } from './attach.ts'
export { MergedPages } from './merge.ts'
export { processSamples, processText } from './process.ts'
export { hooksMetrics, processMetrics, proxyMetrics } from './programs.ts'
export { durationBounds, type MetricRow, prometheusName } from './row.ts'
export { serverMetrics } from './server.ts'
export { histogramText, type HistogramSample, metricsType, metricText, type MetricSample } from './text.ts'

export type Program = 'vmcp' | 'proxy' | 'attach' | 'authserver' | 'hooks'

/** Metric families that the authorization server adds to its host's page. */
const authServerMetrics = ['authServerSecretUses', 'authServerEvents'] as const

/** Metrics that each program serves. The embedded authorization server adds its own metrics to its host's page. */
export const programMetrics: Readonly<Record<Program, readonly MetricRow[]>> = {
  vmcp: [...Object.values(serverMetrics), ...Object.values(processMetrics)],
  proxy: [
    ...Object.values(proxyMetrics),
    serverMetrics.authServerSecretUses,
    serverMetrics.authServerEvents,
    serverMetrics.logLinesLost,
    ...Object.values(processMetrics),
  ],
  attach: [
    ...Object.values(attachMetrics),
    serverMetrics.problems,
    serverMetrics.events,
    serverMetrics.logLinesLost,
    ...Object.values(processMetrics),
  ],
  authserver: authServerMetrics.map((name) => serverMetrics[name]),
  hooks: [...Object.values(hooksMetrics), ...Object.values(processMetrics)],
}
