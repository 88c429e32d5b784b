/**
 * Exporters that send spans and metrics to a collector with OTLP over HTTP, in protobuf or JSON.
 *
 * An unreachable collector affects only telemetry: queues are bounded, and the log reports the start and the end of
 * each failure once. Responses from the collector are not logged.
 */
import { OTLPMetricExporter as JsonMetricExporter } from '@opentelemetry/exporter-metrics-otlp-http'
import { OTLPMetricExporter as ProtobufMetricExporter } from '@opentelemetry/exporter-metrics-otlp-proto'
import { OTLPTraceExporter as JsonTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { OTLPTraceExporter as ProtobufTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto'
import type { PushMetricExporter } from '@opentelemetry/sdk-metrics'
import type { SpanExporter } from '@opentelemetry/sdk-trace'
import { guardedLookup, type Log, proxyName, proxyFor } from '../../net/index.ts'
import type { CollectorSettings } from './settings.ts'

type ExportResult = Parameters<Parameters<SpanExporter['export']>[1]>[0]

const exportTimeoutMs = 10_000
/** A result code from the OpenTelemetry API. */
const success = 0

function options(url: string, { headers, ca, proxy }: CollectorSettings) {
  // Node's agent opens the connection, and our rules select the route.
  const server = proxyFor(url, proxy)
  return {
    url,
    headers: { ...headers },
    timeoutMillis: exportTimeoutMs,
    httpAgentOptions: {
      keepAlive: true,
      lookup: guardedLookup('operator'),
      ...(ca === undefined ? {} : { ca }),
      ...(server === undefined ? {} : { proxyEnv: { HTTP_PROXY: server, HTTPS_PROXY: server } }),
    },
  }
}

export function traceExporter(collector: CollectorSettings, log: Log): SpanExporter {
  const Exporter = collector.tracesProtocol === 'http/json' ? JsonTraceExporter : ProtobufTraceExporter
  const exporter: SpanExporter = new Exporter(options(collector.tracesUrl, collector))
  const watch = failureLog('traces', collector.tracesUrl, collector, log)
  return {
    export: (spans, done) => exporter.export(spans, watch(done)),
    shutdown: () => exporter.shutdown(),
    forceFlush: async () => exporter.forceFlush?.(),
  }
}

export function metricExporter(collector: CollectorSettings, log: Log): PushMetricExporter {
  const Exporter = collector.metricsProtocol === 'http/json' ? JsonMetricExporter : ProtobufMetricExporter
  const exporter: PushMetricExporter = new Exporter(options(collector.metricsUrl, collector))
  const watch = failureLog('metrics', collector.metricsUrl, collector, log)
  return {
    export: (metrics, done) => exporter.export(metrics, watch(done)),
    shutdown: () => exporter.shutdown(),
    forceFlush: () => exporter.forceFlush(),
  }
}

type Done = (result: ExportResult) => void

/** Logs the first failed export, and the recovery. */
function failureLog(
  signal: string,
  url: string,
  collector: CollectorSettings,
  log: Log,
): (done: Done) => Done {
  const proxy = proxyName(url, collector.proxy)
  let failing = false
  return (done) => (result) => {
    const code: number = result.code
    const failed = code !== success
    if (failed && !failing)
      log.warn('telemetry cannot be sent to the collector', {
        signal,
        reason: reasonOf(result.error),
        ...(proxy === undefined ? {} : { httpProxy: proxy }),
      })
    else if (!failed && failing) log.info('telemetry is being sent to the collector again', { signal })
    failing = failed
    done(result)
  }
}

/** Returns a status or a system error code, never text from the collector. */
function reasonOf(error: Error | undefined): string {
  const code: unknown = error && 'code' in error ? error.code : undefined
  if (typeof code === 'string' || typeof code === 'number') return String(code)
  const cause: unknown = error?.cause
  const inner: unknown = cause instanceof Error && 'code' in cause ? cause.code : undefined
  return typeof inner === 'string' ? inner : (error?.name ?? 'unknown')
}
