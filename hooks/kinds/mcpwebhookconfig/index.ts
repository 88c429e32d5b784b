/** MCPWebhookConfig: webhooks shared by several servers. */
import { configKind } from '../common/config-kind.ts'
import { webhookReferences } from '../../references/referrers.ts'
import { webhookSecrets } from '../../runtime-config/webhooks.ts'
import { webhookViolations, webhookWarnings } from './validate.ts'

export const mcpWebhookConfig = configKind({
  kind: 'MCPWebhookConfig',
  referenceFields: ['webhookConfigRef'],
  validate: webhookViolations,
  warnings: webhookWarnings,
  validReason: 'ConfigValid',
  invalidReason: 'ConfigInvalid',
  references: webhookReferences,
  secrets: webhookSecrets,
})
