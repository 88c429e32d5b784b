/**
 * Configures one server's telemetry from an MCPTelemetryConfig.
 *
 * Secret header values become environment variables, which the configuration refers to as `${VARIABLE}`. If an endpoint
 * has no scheme, `insecure` determines the scheme.
 * Source: docs/reference/specification/virtual-server.md#telemetry, "telemetry".
 */
import {
  envName,
  type MCPTelemetryConfig,
  type MCPTelemetryConfigReference,
  type Telemetry,
} from '../../schemas/index.ts'
import type { AnyContext } from '../sync/context.ts'
import type { PodNeeds } from './needs.ts'
import { caKey } from '../references/resolve.ts'
import { definedFields } from '../base/kube.ts'

const certificateDirectory = '/config/certs/otel'

export function telemetryPart(
  { spec }: MCPTelemetryConfig,
  reference: MCPTelemetryConfigReference,
  { context, needs }: { readonly context: AnyContext; readonly needs: PodNeeds },
): Telemetry {
  const otel = spec.openTelemetry?.enabled ? spec.openTelemetry : undefined
  const bundle = otel?.caBundleRef?.configMapRef
  const directory = `${certificateDirectory}/${bundle?.name}`
  if (bundle) needs.configFiles(`otel-ca-${bundle.name}`, directory, bundle.name)
  const secret = (otel?.sensitiveHeaders ?? []).map(({ name, secretKeyRef }): [string, string] => [
    name,
    `\${${needs.secretEnv(`GATEHOUSE_OTEL_HEADER_${envName(name)}`, secretKeyRef)}}`,
  ])
  const headers = { ...literalHeaders(otel?.headers), ...Object.fromEntries(secret) }
  const insecure = otel !== undefined && (otel.insecure || (otel.endpoint ?? '').startsWith('http://'))
  return definedFields({
    endpoint: otel?.endpoint && urlOf(otel.endpoint, insecure),
    insecure,
    headers: Object.keys(headers).length > 0 ? headers : undefined,
    caCertPath: bundle && `${directory}/${caKey(bundle.key)}`,
    customAttributes: otel?.resourceAttributes,
    tracingEnabled: otel?.tracing?.enabled ?? false,
    metricsEnabled: otel?.metrics?.enabled ?? false,
    samplingRate: otel?.tracing?.samplingRate ?? '0.05',
    useLegacyAttributes: otel?.useLegacyAttributes ?? true,
    enablePrometheusMetricsPath: spec.prometheus?.enabled ?? false,
    serviceName: reference.serviceName || `gatehouse-${context.name}`,
    serviceVersion: context.settings.version,
  })
}

/**
 * Escapes `${NAME}` in a resource's headers, because the runtime would replace it with a variable from the pod's
 * environment. Values in a resource are literal text. A value must not read other secrets from the environment.
 */
export function literalHeaders(
  headers: Readonly<Record<string, string>> | undefined,
): Readonly<Record<string, string>> | undefined {
  if (!headers) return undefined
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [
      name,
      value.replaceAll(/\$\{[A-Za-z_][A-Za-z0-9_]*\}/g, (reference) => `$${reference}`),
    ]),
  )
}

function urlOf(endpoint: string, insecure: boolean): string {
  if (/^https?:\/\//.test(endpoint)) return endpoint
  return `${insecure ? 'http' : 'https'}://${endpoint}`
}
