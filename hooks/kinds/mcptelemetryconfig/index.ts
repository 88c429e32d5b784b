/** MCPTelemetryConfig: telemetry settings shared by several servers. */
import { configKind } from '../common/config-kind.ts'
import { telemetryReferences } from '../../references/referrers.ts'
import { telemetryViolations } from './validate.ts'

export const mcpTelemetryConfig = configKind({
  kind: 'MCPTelemetryConfig',
  referenceFields: ['telemetryConfigRef'],
  validate: telemetryViolations,
  validReason: 'ValidationSucceeded',
  invalidReason: 'ValidationFailed',
  references: telemetryReferences,
  secrets: ({ spec }) => (spec.openTelemetry?.sensitiveHeaders ?? []).map(({ secretKeyRef }) => secretKeyRef),
  caBundles: ({ spec }) => (spec.openTelemetry?.caBundleRef ? [spec.openTelemetry.caBundleRef] : []),
})
