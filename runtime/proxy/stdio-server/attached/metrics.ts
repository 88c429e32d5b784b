/**
 * Prometheus metrics for a proxy that is attached to its server. Events update the counts. Each scrape reads the
 * current values.
 */
import {
  attachMetrics,
  type MetricRow,
  metricText,
  type MetricSample,
  processText,
  serverMetrics,
} from '../../../../schemas/metrics/index.ts'
import { type Events, lostLogLines } from '../../../observe/index.ts'

export interface AttachMetricsOptions {
  /** The server's name. */
  readonly server: string
  readonly version: string
  readonly events: Events
  readonly now: () => {
    readonly up: boolean
    /** Number of requests sent to the server, and number of requests waiting for the server. */
    readonly withServer: number
    readonly waiting: number
  }
}

/** Starts counting. The returned function formats the metrics. */
export function makeAttachMetrics({ server, version, events, now }: AttachMetricsOptions): () => string {
  const counts = { attachments: 0, initializations: 0, lost: 0, lines: 0, restarts: 0 }
  const ended = new Map<string, number>()
  const types = new Map<string, number>()
  events.listen(({ type, fields }) => {
    types.set(type, (types.get(type) ?? 0) + 1)
    if (type === 'server_initialized') counts.initializations++
    else if (type === 'server_line_too_long') counts.lines++
    else if (type === 'server_requests_lost' && 'count' in fields) counts.lost += fields.count
    else if (type === 'attach_state' && 'attached' in fields) {
      if (fields.attached) counts.attachments++
      if (fields.ended) ended.set(fields.ended, (ended.get(fields.ended) ?? 0) + 1)
      counts.restarts = fields.restarts ?? counts.restarts
    }
  })
  const one = (row: MetricRow, value: number): string => metricText(row, [[value, { server }]])
  return () => {
    const { up, withServer, waiting } = now()
    const problems = Map.groupBy(events.problems(), (problem) => problem.type)
    return [
      one(attachMetrics.attachUp, up ? 1 : 0),
      one(attachMetrics.attachments, counts.attachments),
      metricText(
        attachMetrics.attachDetachments,
        [...ended].map(([cause, count]): MetricSample => [count, { server, cause }]),
      ),
      one(attachMetrics.attachInitializations, counts.initializations),
      one(attachMetrics.attachServerRestarts, counts.restarts),
      one(attachMetrics.attachRequestsLost, counts.lost),
      one(attachMetrics.attachLinesTooLong, counts.lines),
      metricText(attachMetrics.attachRequests, [
        [withServer, { server, state: 'with_server' }],
        [waiting, { server, state: 'waiting' }],
      ]),
      metricText(
        serverMetrics.problems,
        [...problems].map(([type, { length }]): MetricSample => [length, { type }]),
      ),
      metricText(
        serverMetrics.events,
        [...types].map(([type, count]): MetricSample => [count, { type }]),
      ),
      metricText(serverMetrics.logLinesLost, [[lostLogLines()]]),
      processText(version),
    ].join('')
  }
}
