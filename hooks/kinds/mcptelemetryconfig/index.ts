/** MCPTelemetryConfig: telemetry settings that several servers share. */
import { configKind } from '../config-kind.ts'
import { type MCPTelemetryConfig, type Violation, envName } from '../../../schemas/index.ts'

export const mcpTelemetryConfig = configKind({
  kind: 'MCPTelemetryConfig',
  validate: telemetryViolations,
  validReason: 'ValidationSucceeded',
  invalidReason: 'ValidationFailed',
  secrets: ({ spec }) => (spec.openTelemetry?.sensitiveHeaders ?? []).map(({ secretKeyRef }) => secretKeyRef),
  caBundles: ({ spec }) => (spec.openTelemetry?.caBundleRef ? [spec.openTelemetry.caBundleRef] : []),
})

function telemetryViolations({ spec }: MCPTelemetryConfig): Violation[] {
  const { openTelemetry: otel } = spec
  if (!otel) return []
  return [...endpointViolations(otel.endpoint), ...headerViolations(otel.sensitiveHeaders ?? [])]
}

function endpointViolations(endpoint: string | undefined): Violation[] {
  if (endpoint === undefined || endpoint === '') return []
  const url = /^https?:\/\//.test(endpoint) ? endpoint : `https://${endpoint}`
  if (URL.canParse(url) && new URL(url).hostname !== '') return []
  return [{ path: 'spec.openTelemetry.endpoint', message: 'must be host:port or a URL' }]
}

/** Each header's value is in an environment variable named after the header. */
function headerViolations(headers: readonly { readonly name: string }[]): Violation[] {
  const seen = new Map<string, string>()
  return headers.flatMap(({ name }, index) => {
    const previous = seen.get(envName(name))
    seen.set(envName(name), name)
    if (previous === undefined) return []
    const message = `uses the same environment variable as the header ${previous}`
    return [{ path: `spec.openTelemetry.sensitiveHeaders[${index}].name`, message }]
  })
}
