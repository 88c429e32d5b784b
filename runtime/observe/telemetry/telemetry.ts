/**
 * The telemetry of one server: metrics, traces, and the handler of `/metrics`.
 *
 * When telemetry is off, all functions do nothing and the SDK is not loaded. An unreachable collector never fails or
 * delays a request; closing waits a few seconds at most.
 * Source: docs/reference/specification/virtual-server.md#telemetry, config.telemetry and "Endpoints".
 */
import type { Telemetry } from '../../../schemas/index.ts'
import { withTimeout, type Log, silentLog } from '../../net/index.ts'
import { type BackendCalls, makeBackendCalls } from './backend-calls.ts'
import { type Metrics, noMetrics } from './metrics.ts'
import { telemetrySettings } from './settings.ts'
import { noTracer, type Tracer } from './tracer.ts'

export interface TelemetryOptions {
  /** Default for serviceName. */
  readonly serverName: string
  /** Version of this program. */
  readonly version: string
  /** Environment variables for the configuration. */
  readonly env?: Readonly<Record<string, string | undefined>> | undefined
  readonly log?: Log | undefined
  /**
   * True to record tool call arguments on spans, redacted and truncated. Default: false, because arguments are the
   * caller's data.
   */
  readonly toolArguments?: boolean | undefined
  /** Interval between pushes of metrics. Defaults to 60 s. */
  readonly exportIntervalMs?: number | undefined
}

export interface Instruments {
  /** False when neither metrics nor traces are on. */
  readonly enabled: boolean
  readonly metrics: Metrics
  readonly tracer: Tracer
  /** Measures calls to backends. */
  readonly backendCalls: BackendCalls
  /** Returns the text of `/metrics`; undefined unless enablePrometheusMetricsPath is true. */
  readonly prometheus: (() => Promise<string>) | undefined
  /** Options for request spans. */
  readonly spans: SpanOptions
  /** Sends pending data for at most a few seconds, then stops. */
  close(): Promise<void>
}

export interface SpanOptions {
  /** True to also write the attribute names from older conventions. */
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

/** Rejects with an INVALID_CONFIG error that lists all errors in the configuration. */
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
      closing ??= withTimeout(closeMs, sdk.shutdown(), () => {})
      return closing
    },
  }
}
