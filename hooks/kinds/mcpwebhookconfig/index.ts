/** MCPWebhookConfig: webhooks that several servers share. */
import { configKind } from '../config-kind.ts'
import { webhookPairFailure, webhookSecrets } from '../../runtime-config/webhooks.ts'
import type { MCPWebhookConfig, Violation } from '../../../schemas/index.ts'

export const mcpWebhookConfig = configKind({
  kind: 'MCPWebhookConfig',
  validate: webhookViolations,
  warnings: webhookWarnings,
  validReason: 'ConfigValid',
  invalidReason: 'ConfigInvalid',
  secrets: webhookSecrets,
  check: webhookPairFailure,
})

export function webhookViolations({ spec }: MCPWebhookConfig): Violation[] {
  const count = (spec.mutating?.length ?? 0) + (spec.validating?.length ?? 0)
  if (count > 0) return []
  return [{ path: 'spec', message: 'needs at least one webhook in mutating or validating' }]
}

export function webhookWarnings({ spec }: MCPWebhookConfig): string[] {
  return (['mutating', 'validating'] as const).flatMap((kind) =>
    (spec[kind] ?? []).flatMap(({ name, tlsConfig, failurePolicy, mode }) => [
      ...(tlsConfig?.insecureSkipVerify
        ? [
            `${kind}[${name}].tlsConfig.insecureSkipVerify: an attacker on the network can read calls and forge decisions`,
          ]
        : []),
      ...(failurePolicy === 'ignore' && mode === 'enforce'
        ? [
            `${kind}[${name}].failurePolicy ignore: calls continue without the webhook when it does not respond`,
          ]
        : []),
    ]),
  )
}
