/**
 * Validates and resolves the `telemetry` section of a configuration: addresses, headers, trust anchors, sampling.
 *
 * The caller passes the environment. Header values may refer to variables as `${NAME}`, which keeps secrets out of the
 * file; `$${NAME}` is the literal `${NAME}`. The endpoint is the base URL for both signals: `/v1/traces` and
 * `/v1/metrics` are appended to it. The encoding is protobuf unless the standard variables select JSON.
 * Source: docs/reference/specification/virtual-server.md#telemetry, config.telemetry; OpenTelemetry protocol exporter
 * specification.
 */
import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import {
  GatehouseError,
  headerNameViolation,
  headerValueViolation,
  serviceViolation,
  type Telemetry,
} from '../../../schemas/index.ts'
import { isLoopbackHost, proxyEnvironment, type ProxyEnvironment } from '../../net/index.ts'
import { isSensitive } from './arguments.ts'

type Environment = Readonly<Record<string, string | undefined>>

export interface TelemetrySettings {
  readonly traces: boolean
  readonly metrics: boolean
  readonly prometheus: boolean
  readonly collector: CollectorSettings | undefined
  readonly samplingRatio: number
  readonly legacy: boolean
  /** Resource attributes. */
  readonly resource: Readonly<Record<string, string>>
  /** Attributes of server spans. */
  readonly environment: Readonly<Record<string, string>>
  /** Problems that only cause a warning. */
  readonly warnings: readonly string[]
}

/** The encodings of OTLP over HTTP. */
export type OtlpProtocol = 'http/protobuf' | 'http/json'

export interface CollectorSettings {
  readonly tracesUrl: string
  readonly metricsUrl: string
  readonly tracesProtocol: OtlpProtocol
  readonly metricsProtocol: OtlpProtocol
  readonly headers: Readonly<Record<string, string>>
  /** PEM. */
  readonly ca: string | undefined
  /** HTTP proxies from the environment. */
  readonly proxy: ProxyEnvironment
}

export interface SettingsFrom {
  readonly serverName: string
  readonly version: string
  readonly env: Environment
}

/** Returns the errors in a configuration, one line each. */
export function telemetryViolations(config: Telemetry | undefined, env: Environment): readonly string[] {
  const violations: string[] = []
  readSettings(config, { serverName: '', version: '', env }, violations)
  return violations
}

/** Returns undefined when telemetry is off. Throws an INVALID_CONFIG error that lists all errors. */
export function telemetrySettings(
  config: Telemetry | undefined,
  from: SettingsFrom,
): TelemetrySettings | undefined {
  const violations: string[] = []
  const settings = readSettings(config, from, violations)
  if (violations.length > 0) throw new GatehouseError('INVALID_CONFIG', { detail: violations.join('\n') })
  return settings
}

function readSettings(
  config: Telemetry | undefined,
  from: SettingsFrom,
  violations: string[],
): TelemetrySettings | undefined {
  if (!config) return undefined
  const warnings: string[] = []
  const { tracingEnabled, metricsEnabled, enablePrometheusMetricsPath: prometheus } = config
  const collector = readCollector(config, from.env, violations, warnings)
  if (collector && !tracingEnabled && !metricsEnabled)
    violations.push('telemetry.endpoint: set tracingEnabled or metricsEnabled, or omit the endpoint')
  if (!config.endpoint && tracingEnabled)
    warnings.push('telemetry.tracingEnabled has no effect without telemetry.endpoint')
  if (!config.endpoint && metricsEnabled && !prometheus)
    warnings.push(
      'telemetry.metricsEnabled has no effect without telemetry.endpoint or telemetry.enablePrometheusMetricsPath',
    )
  const samplingRatio = Number(config.samplingRate)
  if (config.samplingRate.trim() === '' || !(samplingRatio >= 0 && samplingRatio <= 1))
    violations.push('telemetry.samplingRate: must be a number from 0.0 to 1.0')
  const environment = readVariables(config.environmentVariables ?? [], from.env, warnings)
  const traces = tracingEnabled && collector !== undefined
  const metrics = metricsEnabled && collector !== undefined
  if (!traces && !metrics && !prometheus && warnings.length === 0) return undefined
  return {
    traces,
    metrics,
    prometheus,
    collector,
    samplingRatio,
    legacy: config.useLegacyAttributes,
    resource: {
      ...podAttributes(from.env),
      'service.instance.id': randomUUID(),
      ...config.customAttributes,
      'service.name': config.serviceName || from.serverName,
      'service.version': config.serviceVersion || from.version,
    },
    environment,
    warnings,
  }
}

/**
 * Returns the resource attributes from a pod's environment variables.
 * Source: OpenTelemetry semantic conventions, Kubernetes attributes.
 */
function podAttributes(env: Environment): Readonly<Record<string, string>> {
  const found = {
    'k8s.namespace.name': env['VMCP_NAMESPACE'],
    'k8s.pod.name': env['GATEHOUSE_POD_NAME'],
  }
  if (!found['k8s.pod.name']) return {}
  return Object.fromEntries(Object.entries(found).flatMap(([name, value]) => (value ? [[name, value]] : [])))
}

function readCollector(
  config: Telemetry,
  env: Environment,
  violations: string[],
  warnings: string[],
): CollectorSettings | undefined {
  if (!config.endpoint) return undefined
  const base = readEndpoint(config.endpoint, config.insecure, violations, warnings)
  const headers = readHeaders(config.headers ?? {}, env, violations)
  const ca = config.caCertPath === undefined ? undefined : readCa(config.caCertPath, violations)
  const tracesProtocol = readProtocol('TRACES', env, violations)
  const metricsProtocol = readProtocol('METRICS', env, violations)
  if (!base) return undefined
  return {
    tracesUrl: `${base}/v1/traces`,
    metricsUrl: `${base}/v1/metrics`,
    tracesProtocol,
    metricsProtocol,
    headers,
    ca,
    proxy: proxyEnvironment(env),
  }
}

const defaultProtocol: OtlpProtocol = 'http/protobuf'

/** The signal's own variable takes precedence over the common variable. An empty variable counts as unset. */
function readProtocol(signal: 'TRACES' | 'METRICS', env: Environment, violations: string[]): OtlpProtocol {
  const names = [`OTEL_EXPORTER_OTLP_${signal}_PROTOCOL`, 'OTEL_EXPORTER_OTLP_PROTOCOL']
  const name = names.find((variable) => env[variable] !== undefined && env[variable] !== '')
  if (name === undefined) return defaultProtocol
  const value = env[name]
  if (value === 'http/protobuf' || value === 'http/json') return value
  const failure =
    value === 'grpc'
      ? `${name}: grpc is not supported: use http/protobuf or http/json, and the collector's HTTP port (usually 4318)`
      : `${name}: must be http/protobuf or http/json`
  if (!violations.includes(failure)) violations.push(failure)
  return defaultProtocol
}

/** Returns the base URL without a trailing slash. */
function readEndpoint(
  endpoint: string,
  insecure: boolean,
  violations: string[],
  warnings: string[],
): string | undefined {
  const text = /^https?:\/\//i.test(endpoint) ? endpoint : `${insecure ? 'http' : 'https'}://${endpoint}`
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (!url || url.search !== '' || url.hash !== '' || url.username !== '' || url.password !== '') {
    violations.push(
      'telemetry.endpoint: must be host:port or an http(s) URL without userinfo, query or fragment',
    )
    return undefined
  }
  if (url.protocol === 'http:' && !insecure && !isLoopbackHost(url.hostname)) {
    violations.push(
      'telemetry.endpoint: http requires telemetry.insecure to be true, because telemetry would be sent in plain text',
    )
  }
  if (url.protocol === 'https:' && insecure)
    warnings.push('telemetry.insecure has no effect on an https endpoint')
  const refused = serviceViolation(url.href)
  if (refused !== undefined) violations.push(`telemetry.endpoint: ${refused}`)
  return url.href.replace(/\/+$/, '')
}

function readHeaders(
  headers: Readonly<Record<string, string>>,
  env: Environment,
  violations: string[],
): Record<string, string> {
  const out: Record<string, string> = {}
  for (const [name, text] of Object.entries(headers)) {
    const field = `telemetry.headers.${name}`
    const value = text.replace(
      /(\$?)\$\{([A-Za-z_][A-Za-z0-9_]*)\}/g,
      (whole, escape: string, variable: string) => {
        if (escape !== '') return whole.slice(1)
        const found = env[variable]
        if (found === undefined || found === '')
          violations.push(`${field}: the variable ${variable} is not set`)
        return found ?? ''
      },
    )
    const problem = headerNameViolation(name, 'collector') ?? headerValueViolation(value)
    if (problem !== undefined) violations.push(`${field}: ${problem}`)
    else out[name] = value
  }
  return out
}

function readCa(path: string, violations: string[]): string | undefined {
  try {
    const pem = readFileSync(path, 'utf8')
    if (pem.includes('-----BEGIN CERTIFICATE-----')) return pem
    violations.push('telemetry.caCertPath: the file contains no PEM certificate')
  } catch {
    violations.push('telemetry.caCertPath: the file cannot be read')
  }
  return undefined
}

/** Omits unset variables and variables whose names indicate credentials, and warns about them. */
function readVariables(
  names: readonly string[],
  env: Environment,
  warnings: string[],
): Record<string, string> {
  const out: Record<string, string> = {}
  for (const name of names) {
    const value = env[name]
    if (value === undefined) continue
    if (isSensitive(name))
      warnings.push(`telemetry.environmentVariables: ${name} is left out because its name suggests a secret`)
    else out[`environment.${name}`] = value
  }
  return out
}
