/**
 * The proxy's counters in Prometheus text format, served on a separate port that is not for clients.
 *
 * Label values come from fixed sets, so that an untrusted client cannot create series; unknown HTTP and JSON-RPC
 * methods are counted as `other`. Durations cover whole responses; streams are counted but not timed.
 * Source: docs/reference/specification/proxy-command.md (added: --metrics-port); Prometheus exposition format 0.0.4.
 */
import type { ServedCertificate } from '../../../schemas/certificate/index.ts'
import {
  histogramText,
  metricsType,
  metricText,
  processText,
  proxyMetrics,
  type MetricSample,
  serverMetrics,
} from '../../../schemas/metrics/index.ts'
import {
  Exchange,
  type Listener,
  listen,
  type Log,
  pipeline,
  sendBody,
  sendProblem,
  sendText,
} from '../../net/index.ts'
import { type Events, lostLogLines } from '../../observe/index.ts'
import type { SecretUse } from '../../incoming/index.ts'
import type { RequestFacts, RequestObserver } from './request-log.ts'

const httpMethods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])
const rpcMethods: ReadonlySet<string> = new Set([
  'initialize',
  'notifications/initialized',
  'notifications/cancelled',
  'notifications/progress',
  'ping',
  'server/discover',
  'tools/list',
  'tools/call',
  'resources/list',
  'resources/templates/list',
  'resources/read',
  'resources/subscribe',
  'resources/unsubscribe',
  'prompts/list',
  'prompts/get',
  'completion/complete',
  'logging/setLevel',
  'subscriptions/listen',
])
const unknownVersion = '0.0.0'
/** Upper bounds in seconds. */
const buckets: readonly number[] = proxyMetrics.proxyRequestDuration.bounds

export interface ProxyMetrics {
  readonly observe: RequestObserver
  counts(): Counts
  /** Returns the metrics in exposition format. */
  render(): string
}

/** The counts as plain numbers, which can be sent to another process. */
export interface Counts {
  /** Counts, keyed by their labels as JSON. */
  readonly requests: ReadonlyMap<string, number>
  readonly calls: ReadonlyMap<string, number>
  readonly durations: Histogram
}

interface Histogram {
  readonly counts: readonly number[]
  readonly sum: number
  readonly count: number
}

/** `more` returns additional text. */
export function makeProxyMetrics(version = unknownVersion, more: () => string = () => ''): ProxyMetrics {
  const requests = new Map<string, number>()
  const calls = new Map<string, number>()
  const durations = { counts: buckets.map(() => 0), sum: 0, count: 0 }

  function observe(facts: RequestFacts): void {
    const method = httpMethods.has(facts.method) ? facts.method : 'other'
    add(requests, `{"method":"${method}","status":"${facts.status}"}`, 1)
    if (facts.rpcMethod) {
      add(calls, `{"method":"${rpcMethods.has(facts.rpcMethod) ? facts.rpcMethod : 'other'}"}`, 1)
    }
    if (facts.stream) return
    const seconds = facts.durationMs / 1000
    durations.sum += seconds
    durations.count++
    for (const [i, bound] of buckets.entries()) {
      if (seconds <= bound) durations.counts[i] = (durations.counts[i] ?? 0) + 1
    }
  }

  const counts = (): Counts => ({ requests, calls, durations })
  return { observe, counts, render: () => more() + mergedMetrics([counts()], { version, workers: 1 }) }
}

/**
 * Returns, for each of the embedded authorization server's older HMAC secrets, the number of records that still need
 * the secret.
 */
export function secretUseMetrics(uses: readonly SecretUse[] = []): string {
  if (uses.length === 0) return ''
  return metricText(
    serverMetrics.authServerSecretUses,
    uses.flatMap(({ position, records, refreshTokens }): MetricSample[] => [
      [records, { secret: position, kind: 'records' }],
      [refreshTokens, { secret: position, kind: 'refresh_tokens' }],
    ]),
  )
}

/** Counts the embedded authorization server's events. The returned function formats the counts as metrics. */
export function authServerMetrics(events: Events): () => string {
  const counts = new Map<string, number>()
  events.listen(({ type, fields }) => {
    if (type !== 'authorization_server' || !('action' in fields)) return
    const { action, outcome, upstream } = fields
    add(counts, JSON.stringify({ action, outcome, upstream }), 1)
  })
  return () => metricText(serverMetrics.authServerEvents, samplesOf(counts))
}

export interface MergeOptions {
  readonly version?: string | undefined
  /** The number of processes that this proxy runs. */
  readonly workers: number
}

/** Returns the summed counts of several processes in exposition format. */
export function mergedMetrics(
  all: readonly Counts[],
  { version = unknownVersion, workers }: MergeOptions,
): string {
  const requests = new Map<string, number>()
  const calls = new Map<string, number>()
  for (const counts of all) {
    for (const [labels, value] of counts.requests) add(requests, labels, value)
    for (const [labels, value] of counts.calls) add(calls, labels, value)
  }
  const durations = {
    labels: {},
    counts: buckets.map((_, i) => total(all.map((counts) => counts.durations.counts[i] ?? 0))),
    sum: total(all.map((counts) => counts.durations.sum)),
    count: total(all.map((counts) => counts.durations.count)),
  }
  return [
    metricText(proxyMetrics.proxyRequests, samplesOf(requests)),
    metricText(proxyMetrics.proxyRpcRequests, samplesOf(calls)),
    histogramText(proxyMetrics.proxyRequestDuration, [durations]),
    metricText(proxyMetrics.proxyWorkers, [[workers]]),
    metricText(serverMetrics.logLinesLost, [[lostLogLines()]]),
    processText(version),
  ].join('')
}

export function isCounts(value: unknown): value is Counts {
  return typeof value === 'object' && value !== null && 'requests' in value && value.requests instanceof Map
}

function total(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0)
}

function add(map: Map<string, number>, labels: string, value: number): void {
  map.set(labels, (map.get(labels) ?? 0) + value)
}

function* samplesOf(counts: ReadonlyMap<string, number>): Generator<MetricSample> {
  for (const [labels, value] of counts) yield [value, JSON.parse(labels) as Readonly<Record<string, string>>]
}

/** Returns the expiry of the served certificate; empty if there is none. */
export function certificateMetrics(certificate: ServedCertificate | undefined): string {
  if (!certificate) return ''
  return metricText(serverMetrics.certificateExpiry, [
    [certificate.endsAt / 1_000, { certificate: 'serving' }],
  ])
}

export interface MetricsAddress {
  readonly host: string
  readonly port: number
  readonly certificate: ServedCertificate | undefined
}

/** Serves `/metrics` on a separate port. Rejects with the system's error when the port cannot be bound. */
export function serveMetrics(
  metrics: { render(): string | Promise<string> },
  address: MetricsAddress,
  log: Log,
): Promise<Listener> {
  const handler = pipeline(
    {
      async dispatch({ req, res, path }: Exchange) {
        if (path !== '/metrics' || (req.method !== 'GET' && req.method !== 'HEAD')) {
          sendText(res, 404, 'metrics are at /metrics\n')
        } else sendBody(res, 200, metricsType, await metrics.render())
      },
      recover: ({ res }, error) => sendProblem(res, error),
    },
    Exchange,
  )
  return listen({ ...address, handler, log })
}
