/** MCPWebhookConfig: webhooks shared by several servers. */
import { configKind } from '../config-kind.ts'
import { webhookSecrets } from '../../runtime-config/webhooks.ts'
import { webhookViolations, webhookWarnings } from './validate.ts'

export const mcpWebhookConfig = configKind({
  kind: 'MCPWebhookConfig',
  validate: webhookViolations,
  warnings: webhookWarnings,
  validReason: 'ConfigValid',
  invalidReason: 'ConfigInvalid',
  secrets: webhookSecrets,
})
