/**
 * The telemetry of one server: metrics, traces, and what answers `/metrics`.
 *
 * Off, everything is there and does nothing; the SDK is not even loaded. A collector that cannot be reached never
 * fails or delays a request, and closing waits for it a few seconds at most.
 * Source: docs/specification/virtual-server.md#telemetry, config.telemetry and "Endpoints".
 */
import type { Telemetry } from '../../../schemas/index.ts'
import { atMost, type Log, silentLog } from '../../net/index.ts'
import { type BackendCalls, makeBackendCalls } from './backend-calls.ts'
import { type Metrics, noMetrics } from './metrics.ts'
import { telemetrySettings } from './settings.ts'
import { noTracer, type Tracer } from './tracer.ts'

export interface TelemetryOptions {
  /** Default of serviceName. */
  readonly serverName: string
  /** Version of this program. */
  readonly version: string
  /** Variables that the configuration may name. */
  readonly env?: Readonly<Record<string, string | undefined>> | undefined
  readonly log?: Log | undefined
  /** Records arguments of tool calls on spans, redacted and cut. Default false: arguments are the caller's own data. */
  readonly toolArguments?: boolean | undefined
  /** How often metrics are pushed. Default 60 s. */
  readonly exportIntervalMs?: number | undefined
}

export interface Instruments {
  /** False: nothing is measured. */
  readonly enabled: boolean
  readonly metrics: Metrics
  readonly tracer: Tracer
  /** Measures calls of backends. */
  readonly backendCalls: BackendCalls
  /** The text of `/metrics`; undefined unless enablePrometheusMetricsPath is true. */
  readonly prometheus: (() => Promise<string>) | undefined
  /** How requests are described on spans. */
  readonly spans: SpanOptions
  /** Sends what is pending, for a few seconds at most, and stops. */
  close(): Promise<void>
}

export interface SpanOptions {
  /** Adds the attribute names of older conventions. */
  readonly legacy: boolean
  readonly toolArguments: boolean
  /** Attributes of every server span. */
  readonly environment: Readonly<Record<string, string>>
}

const closeMs = 5_000
const defaultExportIntervalMs = 60_000

export const noTelemetry: Instruments = {
  enabled: false,
  metrics: noMetrics,
  tracer: noTracer,
  backendCalls: makeBackendCalls(noMetrics, noTracer, { enabled: false }),
  prometheus: undefined,
  spans: { legacy: false, toolArguments: false, environment: {} },
  close: async () => {},
}

/** Rejects with INVALID_CONFIG naming every error of the configuration. */
export async function makeTelemetry(
  config: Telemetry | undefined,
  options: TelemetryOptions,
): Promise<Instruments> {
  const { serverName, version, env = {}, log = silentLog } = options
  const settings = telemetrySettings(config, { serverName, version, env })
  for (const warning of settings?.warnings ?? []) log.warn('telemetry setting', { hint: warning })
  if (!settings || !(settings.traces || settings.metrics || settings.prometheus)) return noTelemetry
  const { startSdk } = await import('./sdk.ts')
  const sdk = startSdk(settings, {
    version,
    log,
    exportIntervalMs: options.exportIntervalMs ?? defaultExportIntervalMs,
  })
  let closing: Promise<void> | undefined
  return {
    enabled: true,
    metrics: sdk.metrics,
    tracer: sdk.tracer,
    backendCalls: makeBackendCalls(sdk.metrics, sdk.tracer, { enabled: true }),
    prometheus: sdk.prometheus,
    spans: {
      legacy: settings.legacy,
      toolArguments: options.toolArguments ?? false,
      environment: settings.environment,
    },
    close() {
      closing ??= atMost(closeMs, sdk.shutdown(), () => {})
      return closing
    },
  }
}
