/**
 * Reads and writes the Kubernetes objects that contain certificates, by name.
 *
 * Loads the official Kubernetes client on demand. Needs get and update on one Secret, and get and patch on one
 * ValidatingWebhookConfiguration and on named CompositeControllers. Never lists, watches or creates objects. The
 * manifests contain an empty Secret, so the permissions can be limited to its name. Errors contain the object's name
 * and the HTTP status but never a body, because a response may echo the Secret.
 */
import { GatehouseError } from '../../schemas/index.ts'
import type { ClusterResponse, ClusterRequest, ResourcePath, ApiServer } from '../base/api-server.ts'
import { type Fields, fieldsOf, isFields, listOf } from '../base/kube.ts'
import type { Stored } from './plan.ts'
import type { Cluster, HeldCertificate, TrustTarget } from './rotate.ts'

export interface CertificateClusterOptions {
  readonly namespace: string
  readonly secret: string
  readonly webhookConfigurations: readonly string[]
  readonly compositeControllers: readonly string[]
  /** Path to a kubeconfig. Defaults to the pod's service account or the user's own configuration. */
  readonly kubeconfig?: string | undefined
}

const sinceAnnotation = 'gatehouse.dev/certificates-since'
const managedKeys = ['tls.crt', 'tls.key', 'next.crt', 'next.key', 'ca.crt'] as const

/**
 * Returns a lazy connection that sends its first request on the first read. Throws INVALID_CONFIG when no cluster is
 * configured.
 */
export async function connect(options: CertificateClusterOptions): Promise<Cluster> {
  const { KubeConfig, apiPath, apiServer } = await import('../base/api-server.ts')
  const config = new KubeConfig()
  try {
    if (options.kubeconfig) config.loadFromFile(options.kubeconfig)
    else config.loadFromDefault()
  } catch (cause) {
    throw new GatehouseError('INVALID_CONFIG', {
      detail: 'the Kubernetes configuration cannot be read',
      cause,
    })
  }
  const api = apiServer(config)
  const at = (label: string, resource: ResourcePath): StoredObject =>
    storedObject(api, label, apiPath(resource))
  const { namespace, secret: name } = options
  const secret = at(`secret/${name}`, { group: '', version: 'v1', plural: 'secrets', namespace, name })
  return {
    targets: [
      ...options.webhookConfigurations.map((name) =>
        webhookTarget(at(`validatingwebhookconfiguration/${name}`, { ...webhookConfigurations, name })),
      ),
      ...options.compositeControllers.map((name) =>
        controllerTarget(at(`compositecontroller/${name}`, { ...compositeControllers, name })),
      ),
    ],
    readSecret: () => readSecret(secret),
    writeSecret: (version, stored) => writeSecret(secret, version, stored),
  }
}

const webhookConfigurations = {
  group: 'admissionregistration.k8s.io',
  version: 'v1',
  plural: 'validatingwebhookconfigurations',
}
const compositeControllers = {
  group: 'metacontroller.k8s.io',
  version: 'v1alpha1',
  plural: 'compositecontrollers',
}

/**
 * One object in the cluster. Errors thrown by its methods contain the label and the HTTP status, which is also
 * available in `data`.
 */
interface StoredObject {
  readonly label: string
  readonly read: () => Promise<Fields>
  readonly replace: (object: Fields) => Promise<void>
  readonly patch: (contentType: string, patch: unknown) => Promise<void>
}

function storedObject(api: ApiServer, label: string, path: string): StoredObject {
  const send = async (request: Omit<ClusterRequest, 'path'>): Promise<Fields> => {
    let response: ClusterResponse
    try {
      response = await api({ ...request, path })
    } catch {
      throw new GatehouseError('INTERNAL', { detail: `${label}: the API server cannot be reached` })
    }
    const { status, body } = response
    if (status >= 300)
      throw new GatehouseError('INTERNAL', {
        detail: `${label}: the API server answered ${status}`,
        data: status,
      })
    return body
  }
  return {
    label,
    read: () => send({}),
    replace: async (body) => void (await send({ method: 'PUT', body })),
    patch: async (contentType, body) => void (await send({ method: 'PATCH', contentType, body })),
  }
}

async function readSecret(secret: StoredObject): Promise<HeldCertificate> {
  const { metadata, data } = await secret.read()
  const text = (key: string): string => decoded(fieldsOf(data)[key])
  const { resourceVersion, annotations } = fieldsOf(metadata)
  const since = new Date(textOf(fieldsOf(annotations)[sinceAnnotation]))
  return {
    version: textOf(resourceVersion),
    stored: {
      serving: { certificate: text('tls.crt'), key: text('tls.key') },
      next: { certificate: text('next.crt'), key: text('next.key') },
      bundle: text('ca.crt'),
      since: Number.isNaN(since.getTime()) ? undefined : since,
    },
  }
}

async function writeSecret(secret: StoredObject, version: string, stored: Stored): Promise<boolean> {
  const live = await secret.read()
  const metadata = fieldsOf(live['metadata'])
  if (metadata['resourceVersion'] !== version) return false
  const content = {
    'tls.crt': stored.serving.certificate,
    'tls.key': stored.serving.key,
    'next.crt': stored.next.certificate,
    'next.key': stored.next.key,
    'ca.crt': stored.bundle,
  }
  const data = { ...fieldsOf(live['data']) }
  for (const key of managedKeys) {
    if (content[key]) data[key] = encoded(content[key])
    else delete data[key]
  }
  const annotations = {
    ...fieldsOf(metadata['annotations']),
    [sinceAnnotation]: stored.since?.toISOString() ?? '',
  }
  try {
    await secret.replace({ ...live, metadata: { ...metadata, annotations }, data })
    return true
  } catch (error) {
    if (error instanceof GatehouseError && error.data === 409) return false
    throw error
  }
}

function webhookTarget(object: StoredObject): TrustTarget {
  const webhooks = async () => listOf((await object.read())['webhooks']).map(fieldsOf)
  return {
    name: object.label,
    read: async () =>
      (await webhooks()).map((webhook) => decoded(fieldsOf(webhook['clientConfig'])['caBundle'])),
    write: async (bundle) => {
      // Webhooks form a list, so each patch first tests the name at the webhook's index.
      const patch = (await webhooks()).flatMap((one, index) => [
        { op: 'test', path: `/webhooks/${index}/name`, value: one['name'] },
        { op: 'add', path: `/webhooks/${index}/clientConfig/caBundle`, value: encoded(bundle) },
      ])
      await object.patch('application/json-patch+json', patch)
    },
  }
}

function controllerTarget(object: StoredObject): TrustTarget {
  const webhooks = async () => {
    const { hooks } = fieldsOf((await object.read())['spec'])
    return Object.entries(fieldsOf(hooks)).flatMap(([hook, one]) => {
      const { webhook } = fieldsOf(one)
      return isFields(webhook) ? [{ hook, webhook }] : []
    })
  }
  return {
    name: object.label,
    read: async () =>
      (await webhooks()).map(({ webhook }) => textOf(fieldsOf(webhook['caBundle'])['inline'])),
    write: async (bundle) => {
      const webhook = { caBundle: { inline: bundle } }
      const hooks = Object.fromEntries((await webhooks()).map(({ hook }) => [hook, { webhook }]))
      await object.patch('application/merge-patch+json', { spec: { hooks } })
    },
  }
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

function decoded(base64: unknown): string {
  return Buffer.from(textOf(base64), 'base64').toString('utf8')
}

function encoded(text: string): string {
  return Buffer.from(text).toString('base64')
}
