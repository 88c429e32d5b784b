/**
 * Configures one server's webhooks from an MCPWebhookConfig. Secrets and certificates are mounted, and the file
 * contains their paths.
 * Source: docs/guides/webhooks.md.
 */
import type {
  MCPWebhookConfig,
  RuntimeWebhook,
  RuntimeWebhooks,
  SecretRef,
  Webhook,
} from '../../schemas/index.ts'
import type { SyncFailure } from '../sync/conditions.ts'
import type { SyncContext } from '../sync/context.ts'
import { clientPairFailure } from './client-certificate.ts'
import type { PodNeeds } from './needs.ts'
import { definedFields } from '../base/kube.ts'

const directory = '/config/webhooks'

/** Converts an MCPWebhookConfig to the runtime's `webhooks`, and adds its files to the pod. */
export function webhooksPart({ spec }: MCPWebhookConfig, needs: PodNeeds): RuntimeWebhooks {
  const list = (webhooks: readonly Webhook[] | undefined): readonly RuntimeWebhook[] | undefined =>
    webhooks?.map((webhook) => runtimeWebhook(webhook, needs))
  return definedFields({ mutating: list(spec.mutating), validating: list(spec.validating) })
}

function runtimeWebhook({ tlsConfig, hmacSecretRef, ...rest }: Webhook, needs: PodNeeds): RuntimeWebhook {
  /** Returns the path to the file. Each file has its own directory, because different Secrets may contain the files. */
  function file(what: string, ref: SecretRef | undefined): string | undefined {
    if (!ref) return undefined
    const at = `${directory}/${rest.name}/${what}`
    needs.secretFiles(`webhook-${what}-${rest.name}`, at, ref.name, [{ key: ref.key, path: what }])
    return `${at}/${what}`
  }
  return definedFields({
    ...rest,
    insecureSkipVerify: tlsConfig?.insecureSkipVerify ?? false,
    caBundlePath: file('ca', tlsConfig?.caSecretRef),
    clientCertificatePath: file('cert', tlsConfig?.clientCertSecretRef),
    clientKeyPath: file('key', tlsConfig?.clientKeySecretRef),
    hmacSecretPath: file('hmac', hmacSecretRef),
  })
}

/** Returns the first failure of a webhook whose client certificate and key exist, but cannot be used together. */
export function webhookPairFailure(context: SyncContext<'MCPWebhookConfig'>): SyncFailure | undefined {
  const { mutating = [], validating = [] } = context.parent.spec
  for (const { name, tlsConfig } of [...mutating, ...validating]) {
    const { clientCertSecretRef: cert, clientKeySecretRef: key } = tlsConfig ?? {}
    const failure = cert && key && clientPairFailure(context, { cert, key }, `webhook ${name}`)
    if (failure) return failure
  }
  return undefined
}

/** Lists the Secret keys that the webhooks need. */
export function webhookSecrets({ spec }: MCPWebhookConfig): readonly SecretRef[] {
  return [...(spec.mutating ?? []), ...(spec.validating ?? [])].flatMap(({ tlsConfig, hmacSecretRef }) =>
    [
      tlsConfig?.caSecretRef,
      tlsConfig?.clientCertSecretRef,
      tlsConfig?.clientKeySecretRef,
      hmacSecretRef,
    ].filter((ref) => ref !== undefined),
  )
}
