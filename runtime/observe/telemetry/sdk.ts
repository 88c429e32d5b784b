/**
 * Assembles the OpenTelemetry SDK. Nothing is registered or patched globally, and providers live as long as their
 * server. This module is loaded only when telemetry is on.
 */
import { resourceFromAttributes } from '@opentelemetry/resources'
import { MeterProvider, type MetricReader, PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics'
import {
  BatchSpanProcessor,
  ParentBasedSampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace'
import type { Log } from '../../net/index.ts'
import { makeMetrics, type Metrics, noMetrics } from './metrics.ts'
import { metricExporter, traceExporter } from './otlp.ts'
import { makeScrape } from './prometheus.ts'
import type { TelemetrySettings } from './settings.ts'
import { makeTracer } from './spans.ts'
import { noTracer, type Tracer } from './tracer.ts'

export interface SdkOptions {
  readonly version: string
  readonly log: Log
  readonly exportIntervalMs: number
}

export interface Sdk {
  readonly metrics: Metrics
  readonly tracer: Tracer
  readonly prometheus: (() => Promise<string>) | undefined
  shutdown(): Promise<void>
}

const scope = 'gatehouse'
const maxAttributeChars = 2_048

export function startSdk(settings: TelemetrySettings, options: SdkOptions): Sdk {
  const { collector, legacy } = settings
  const { log, version, exportIntervalMs } = options
  const resource = resourceFromAttributes({ ...settings.resource })
  const scrape = settings.prometheus ? makeScrape() : undefined
  const readers: MetricReader[] = scrape ? [scrape.reader] : []
  if (settings.metrics && collector) {
    readers.push(
      new PeriodicExportingMetricReader({
        exporter: metricExporter(collector, log),
        exportIntervalMillis: exportIntervalMs,
        exportTimeoutMillis: Math.min(exportIntervalMs, 15_000),
      }),
    )
  }
  const meters = readers.length > 0 ? new MeterProvider({ resource, readers }) : undefined
  const tracers =
    settings.traces && collector
      ? new TracerProvider({
          resource,
          sampler: new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(settings.samplingRatio) }),
          spanLimits: { attributeValueLengthLimit: maxAttributeChars },
          spanProcessors: [new BatchSpanProcessor({ exporter: traceExporter(collector, log) })],
        })
      : undefined
  return {
    metrics: meters ? makeMetrics(meters.getMeter(scope, version), legacy) : noMetrics,
    tracer: tracers ? makeTracer(tracers.getTracer(scope, version)) : noTracer,
    prometheus: scrape && (() => scrape.text()),
    // Ignores failures, which the exporter has logged.
    async shutdown() {
      await Promise.allSettled([meters?.shutdown(), tracers?.shutdown()])
    },
  }
}
