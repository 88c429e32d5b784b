/**
 * The few objects of a Kubernetes cluster that certificates live in, read and written by name.
 *
 * Uses the official client, loaded when it is needed. Needs: get and update on one Secret; get and patch on one
 * ValidatingWebhookConfiguration and on named CompositeControllers. It lists, watches and creates nothing: the Secret
 * comes empty with the manifests, so that the rights can be limited to its name.
 * Errors name the object and the HTTP status, never a body: a response may repeat the Secret that was sent.
 */
import type { CoreV1Api, KubeConfig } from '@kubernetes/client-node'
import { GatehouseError } from '../../schemas/index.ts'
import type { Stored } from './plan.ts'
import type { Cluster, HeldCertificate, TrustTarget } from './rotate.ts'

export interface CertificateClusterOptions {
  readonly namespace: string
  readonly secret: string
  readonly webhookConfigurations: readonly string[]
  readonly compositeControllers: readonly string[]
  /** Path of a kubeconfig; without it the pod's service account, or the user's own configuration. */
  readonly kubeconfig?: string | undefined
}

const metacontroller = {
  group: 'metacontroller.k8s.io',
  version: 'v1alpha1',
  plural: 'compositecontrollers',
} as const
const sinceAnnotation = 'gatehouse.dev/certificates-since'
const managedKeys = ['tls.crt', 'tls.key', 'next.crt', 'next.key', 'ca.crt'] as const

/** Connects lazily: nothing is sent before the first read. Throws INVALID_CONFIG when no cluster is configured. */
export async function connect(options: CertificateClusterOptions): Promise<Cluster> {
  const kubernetes = await import('./kubernetes.ts')
  const config = new kubernetes.KubeConfig()
  try {
    if (options.kubeconfig) config.loadFromFile(options.kubeconfig)
    else config.loadFromDefault()
  } catch (cause) {
    throw new GatehouseError('INVALID_CONFIG', {
      detail: 'the Kubernetes configuration cannot be read',
      cause,
    })
  }
  const core = config.makeApiClient(kubernetes.CoreV1Api)
  const targets = [
    ...(await webhookTargets(config, options.webhookConfigurations)),
    ...(await controllerTargets(config, options.compositeControllers)),
  ]
  return {
    targets,
    readSecret: () => readSecret(core, options),
    writeSecret: (version, stored) => writeSecret(core, options, version, stored),
  }
}

async function readSecret(core: CoreV1Api, at: CertificateClusterOptions): Promise<HeldCertificate> {
  const secret = await call(`secret/${at.secret}`, () =>
    core.readNamespacedSecret({ name: at.secret, namespace: at.namespace }),
  )
  const text = (key: string): string => Buffer.from(secret.data?.[key] ?? '', 'base64').toString('utf8')
  const since = new Date(secret.metadata?.annotations?.[sinceAnnotation] ?? Number.NaN)
  return {
    version: secret.metadata?.resourceVersion ?? '',
    stored: {
      serving: { certificate: text('tls.crt'), key: text('tls.key') },
      next: { certificate: text('next.crt'), key: text('next.key') },
      bundle: text('ca.crt'),
      since: Number.isNaN(since.getTime()) ? undefined : since,
    },
  }
}

async function writeSecret(
  core: CoreV1Api,
  at: CertificateClusterOptions,
  version: string,
  stored: Stored,
): Promise<boolean> {
  const name = `secret/${at.secret}`
  const live = await call(name, () => core.readNamespacedSecret({ name: at.secret, namespace: at.namespace }))
  if (live.metadata?.resourceVersion !== version) return false
  const content = {
    'tls.crt': stored.serving.certificate,
    'tls.key': stored.serving.key,
    'next.crt': stored.next.certificate,
    'next.key': stored.next.key,
    'ca.crt': stored.bundle,
  }
  const data = { ...live.data }
  for (const key of managedKeys) {
    if (content[key]) data[key] = Buffer.from(content[key]).toString('base64')
    else delete data[key]
  }
  const annotations = { ...live.metadata.annotations, [sinceAnnotation]: stored.since?.toISOString() ?? '' }
  live.metadata.annotations = annotations
  live.data = data
  try {
    await call(name, () =>
      core.replaceNamespacedSecret({ name: at.secret, namespace: at.namespace, body: live }),
    )
    return true
  } catch (error) {
    if (error instanceof GatehouseError && error.data === 409) return false
    throw error
  }
}

async function webhookTargets(config: KubeConfig, names: readonly string[]): Promise<readonly TrustTarget[]> {
  const { AdmissionregistrationV1Api, PatchStrategy, setHeaderOptions } = await import('./kubernetes.ts')
  const api = config.makeApiClient(AdmissionregistrationV1Api)
  return names.map((name): TrustTarget => {
    const label = `validatingwebhookconfiguration/${name}`
    const fetch = () => call(label, () => api.readValidatingWebhookConfiguration({ name }))
    return {
      name: label,
      read: async () => {
        const object = await fetch()
        return (object.webhooks ?? []).map((one) =>
          Buffer.from(one.clientConfig.caBundle ?? '', 'base64').toString('utf8'),
        )
      },
      write: async (bundle) => {
        const object = await fetch()
        // A list of webhooks: each change is guarded by the name at its index.
        const body = (object.webhooks ?? []).flatMap((one, index) => [
          { op: 'test', path: `/webhooks/${index}/name`, value: one.name },
          {
            op: 'add',
            path: `/webhooks/${index}/clientConfig/caBundle`,
            value: Buffer.from(bundle).toString('base64'),
          },
        ])
        const headers = setHeaderOptions('Content-Type', PatchStrategy.JsonPatch)
        await call(label, () => api.patchValidatingWebhookConfiguration({ name, body }, headers))
      },
    }
  })
}

interface ControllerShape {
  readonly spec?: {
    readonly hooks?: Readonly<
      Record<string, { readonly webhook?: { readonly caBundle?: { readonly inline?: string } } }>
    >
  }
}

async function controllerTargets(
  config: KubeConfig,
  names: readonly string[],
): Promise<readonly TrustTarget[]> {
  const { CustomObjectsApi, PatchStrategy, setHeaderOptions } = await import('./kubernetes.ts')
  const api = config.makeApiClient(CustomObjectsApi)
  return names.map((name): TrustTarget => {
    const label = `compositecontroller/${name}`
    const hooksOf = async () => {
      const object: ControllerShape = await call(label, () =>
        api.getClusterCustomObject({ ...metacontroller, name }),
      )
      return Object.entries(object.spec?.hooks ?? {}).filter(([, hook]) => hook.webhook)
    }
    return {
      name: label,
      read: async () => (await hooksOf()).map(([, hook]) => hook.webhook?.caBundle?.inline ?? ''),
      write: async (bundle) => {
        const webhook = { caBundle: { inline: bundle } }
        const hooks = Object.fromEntries((await hooksOf()).map(([hook]) => [hook, { webhook }]))
        const headers = setHeaderOptions('Content-Type', PatchStrategy.MergePatch)
        await call(label, () =>
          api.patchClusterCustomObject({ ...metacontroller, name, body: { spec: { hooks } } }, headers),
        )
      },
    }
  })
}

/** Runs one request; an error becomes an error that names the object and the status, with the status as `data`. */
async function call<T>(object: string, request: () => Promise<T>): Promise<T> {
  try {
    return await request()
  } catch (error) {
    const status = statusOf(error)
    throw new GatehouseError('INTERNAL', {
      detail: status
        ? `${object}: the API server answered ${status}`
        : `${object}: the API server cannot be reached`,
      data: status,
    })
  }
}

/** HTTP status of the client library's exception; undefined for network errors. */
function statusOf(error: unknown): number | undefined {
  const code: unknown = error instanceof Error && 'code' in error ? error.code : undefined
  return typeof code === 'number' ? code : undefined
}
