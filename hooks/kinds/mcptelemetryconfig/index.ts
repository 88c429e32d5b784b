/** MCPTelemetryConfig: telemetry settings shared by several servers. */
import { configKind } from '../config-kind.ts'
import { telemetryViolations } from './validate.ts'

export const mcpTelemetryConfig = configKind({
  kind: 'MCPTelemetryConfig',
  validate: telemetryViolations,
  validReason: 'ValidationSucceeded',
  invalidReason: 'ValidationFailed',
  secrets: ({ spec }) => (spec.openTelemetry?.sensitiveHeaders ?? []).map(({ secretKeyRef }) => secretKeyRef),
  caBundles: ({ spec }) => (spec.openTelemetry?.caBundleRef ? [spec.openTelemetry.caBundleRef] : []),
})
