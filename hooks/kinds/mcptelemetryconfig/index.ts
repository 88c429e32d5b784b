/** MCPTelemetryConfig: telemetry settings shared by several servers. */
import type { MCPTelemetryConfig } from '../../../schemas/index.ts'
import { configKind } from '../../config-kind.ts'
import { telemetryReferences } from '../../referrers.ts'

export const mcpTelemetryConfig = configKind<MCPTelemetryConfig>({
  kind: 'MCPTelemetryConfig',
  validReason: 'ValidationSucceeded',
  invalidReason: 'ValidationFailed',
  references: telemetryReferences,
  secrets: ({ spec }) => (spec.openTelemetry?.sensitiveHeaders ?? []).map(({ secretKeyRef }) => secretKeyRef),
  caBundle: ({ spec }) => spec.openTelemetry?.caBundleRef,
})
