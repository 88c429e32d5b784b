/** MCPTelemetryConfig: telemetry settings shared by several servers. */
import { configKind } from '../shared/config-kind.ts'
import { telemetryReferences } from '../../references/referrers.ts'

export const mcpTelemetryConfig = configKind({
  kind: 'MCPTelemetryConfig',
  validReason: 'ValidationSucceeded',
  invalidReason: 'ValidationFailed',
  references: telemetryReferences,
  secrets: ({ spec }) => (spec.openTelemetry?.sensitiveHeaders ?? []).map(({ secretKeyRef }) => secretKeyRef),
  caBundle: ({ spec }) => spec.openTelemetry?.caBundleRef,
})
