/**
 * Serves metrics for Prometheus: text format 0.0.4 on a route of the main listener.
 *
 * The OpenTelemetry exporter would open a separate listener, so only its serializer is used.
 * Source: docs/reference/specification/virtual-server.md#endpoints, "Endpoints" (/metrics).
 */
import { PrometheusSerializer } from '@opentelemetry/exporter-prometheus'
import { MetricReader, type ResourceMetrics } from '@opentelemetry/sdk-metrics'
import { GatehouseError } from '../../../schemas/index.ts'
import { metricsType } from '../../../schemas/metrics/index.ts'
import { type Exchange, sendBody } from '../../net/index.ts'

class ScrapeReader extends MetricReader {
  protected override async onForceFlush(): Promise<void> {}
  protected override async onShutdown(): Promise<void> {}
}

export interface Scrape {
  readonly reader: MetricReader
  /** Returns the current metrics as text. */
  text(): Promise<string>
}

export function makeScrape(): Scrape {
  const reader = new ScrapeReader()
  const serializer = new PrometheusSerializer('', false, undefined, false, true)
  return {
    reader,
    async text() {
      const { resourceMetrics } = await reader.collect()
      // The cast is safe: the serializer may depend on another SDK patch version, with identical but separate types.
      const collected: unknown = withSeconds(resourceMetrics)
      return serializer.serialize(collected as Parameters<typeof serializer.serialize>[0])
    },
  }
}

/** Handles a scrape. Rejects with METHOD_NOT_ALLOWED for methods other than GET and HEAD. */
export async function respondToScrape({ req, res }: Exchange, render: () => Promise<string>): Promise<void> {
  if (req.method !== 'GET' && req.method !== 'HEAD') {
    throw new GatehouseError('METHOD_NOT_ALLOWED', { headers: { allow: 'GET, HEAD' } })
  }
  const text = await render()
  sendBody(res, 200, metricsType, req.method === 'HEAD' ? '' : text, { 'cache-control': 'no-store' })
}

/** Adds the unit to the name, as Prometheus expects. */
function withSeconds(all: ResourceMetrics): ResourceMetrics {
  return {
    ...all,
    scopeMetrics: all.scopeMetrics.map((scope) => ({
      ...scope,
      metrics: scope.metrics.map((metric) =>
        metric.descriptor.unit === 's'
          ? { ...metric, descriptor: { ...metric.descriptor, name: `${metric.descriptor.name}_seconds` } }
          : metric,
      ),
    })),
  }
}
