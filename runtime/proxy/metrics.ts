/**
 * Counters of the proxy in Prometheus text form, served on a port of their own: they tell nothing to clients.
 *
 * Labels come from closed sets, so that an untrusted client cannot make new series: HTTP methods and JSON-RPC methods that are
 * not known count as `other`. Durations are those of whole responses; streams are counted, not timed.
 * Source: docs/specification/proxy-command.md (added: --metrics-port); Prometheus exposition format 0.0.4.
 */
import {
  Exchange,
  type Listener,
  listen,
  type Log,
  pipeline,
  sendBody,
  sendProblem,
  sendText,
} from '../net/index.ts'
import type { SecretUse } from '../incoming/index.ts'
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
/** Upper bounds in seconds. */
const buckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60]

export interface ProxyMetrics {
  readonly observe: RequestObserver
  counts(): Counts
  /** The exposition text. */
  render(): string
}

/** Plain numbers, which can cross to another process. */
export interface Counts {
  /** Labels -> number. */
  readonly requests: ReadonlyMap<string, number>
  readonly calls: ReadonlyMap<string, number>
  readonly durations: Histogram
}

interface Histogram {
  readonly counts: readonly number[]
  readonly sum: number
  readonly count: number
}

/** `more`: lines of text about something else. */
export function makeProxyMetrics(more: () => readonly string[] = () => []): ProxyMetrics {
  const requests = new Map<string, number>()
  const calls = new Map<string, number>()
  const durations = { counts: buckets.map(() => 0), sum: 0, count: 0 }

  function observe(facts: RequestFacts): void {
    const method = httpMethods.has(facts.method) ? facts.method : 'other'
    add(requests, `method="${method}",status="${facts.status}"`, 1)
    if (facts.rpcMethod) {
      add(calls, `method="${rpcMethods.has(facts.rpcMethod) ? facts.rpcMethod : 'other'}"`, 1)
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
  return { observe, counts, render: () => [...more(), mergedMetrics([counts()])].join('\n') }
}

/** What still needs each older HMAC secret of the embedded authorization server. */
export function secretUseMetrics(uses: readonly SecretUse[] = []): readonly string[] {
  if (uses.length === 0) return []
  const name = 'gatehouse_authserver_old_secret_uses'
  return [
    `# HELP ${name} What still needs an older HMAC secret; 0 of both kinds: it can be dropped.`,
    `# TYPE ${name} gauge`,
    ...uses.flatMap(({ position, records, refreshTokens }) => [
      `${name}{secret="${position}",kind="records"} ${records}`,
      `${name}{secret="${position}",kind="refresh_tokens"} ${refreshTokens}`,
    ]),
  ]
}

/** The exposition text of several processes' counts together. */
export function mergedMetrics(all: readonly Counts[]): string {
  const requests = new Map<string, number>()
  const calls = new Map<string, number>()
  for (const counts of all) {
    for (const [labels, value] of counts.requests) add(requests, labels, value)
    for (const [labels, value] of counts.calls) add(calls, labels, value)
  }
  const durations = {
    counts: buckets.map((_, i) => total(all.map((counts) => counts.durations.counts[i] ?? 0))),
    sum: total(all.map((counts) => counts.durations.sum)),
    count: total(all.map((counts) => counts.durations.count)),
  }
  return [
    ...counter('gatehouse_proxy_requests_total', 'Requests answered, by HTTP method and status.', requests),
    ...counter('gatehouse_proxy_rpc_requests_total', 'JSON-RPC messages received, by method.', calls),
    ...histogram(
      'gatehouse_proxy_request_duration_seconds',
      'Time to the end of the response, but for streams.',
      durations,
    ),
    ...processMetrics(),
    '',
  ].join('\n')
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

function counter(name: string, help: string, values: ReadonlyMap<string, number>): string[] {
  return [
    `# HELP ${name} ${help}`,
    `# TYPE ${name} counter`,
    ...[...values].map(([labels, value]) => `${name}{${labels}} ${value}`),
  ]
}

function histogram(name: string, help: string, { counts, sum, count }: Histogram): string[] {
  return [
    `# HELP ${name} ${help}`,
    `# TYPE ${name} histogram`,
    ...buckets.map((bound, i) => `${name}_bucket{le="${bound}"} ${counts[i] ?? 0}`),
    `${name}_bucket{le="+Inf"} ${count}`,
    `${name}_sum ${sum}`,
    `${name}_count ${count}`,
  ]
}

function processMetrics(): string[] {
  const { user, system } = process.cpuUsage()
  return [
    '# TYPE process_cpu_seconds_total counter',
    `process_cpu_seconds_total ${(user + system) / 1e6}`,
    '# TYPE process_resident_memory_bytes gauge',
    `process_resident_memory_bytes ${process.memoryUsage.rss()}`,
    '# TYPE process_start_time_seconds gauge',
    `process_start_time_seconds ${(Date.now() / 1000 - process.uptime()).toFixed(3)}`,
  ]
}

/** Serves `/metrics` on a port of its own. Rejects with the system's error when it cannot be bound. */
export function serveMetrics(
  metrics: { render(): string | Promise<string> },
  host: string,
  port: number,
  log: Log,
): Promise<Listener> {
  const handler = pipeline(
    {
      async dispatch({ req, res, path }: Exchange) {
        if (path !== '/metrics' || (req.method !== 'GET' && req.method !== 'HEAD')) {
          sendText(res, 404, 'metrics are at /metrics\n')
        } else sendBody(res, 200, 'text/plain; version=0.0.4; charset=utf-8', await metrics.render())
      },
      recover: ({ res }, error) => sendProblem(res, error),
    },
    (req, res) => new Exchange(req, res),
  )
  return listen({ host, port, handler, log })
}
