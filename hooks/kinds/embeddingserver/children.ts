/**
 * Builds the children of an EmbeddingServer: service account, Service and StatefulSet, under the restricted Pod
 * Security Standard.
 */
import type { EmbeddingServer, ModelCache } from '../../../schemas/index.ts'
import { canonicalQuantity } from '../../children/quantity.ts'
import { ownLabels, selectorLabels } from '../../children/labels.ts'
import { service, serviceAccount } from '../../children/objects.ts'
import { type ContainerEnvVar, httpProbe, type PodTemplateSpec, pullSecrets } from '../../children/pod.ts'
import { mergePodTemplate, type PodTemplateResult } from '../../children/pod-template.ts'
import { podSecurity, serverContainerSecurity } from '../../children/security.ts'
import { statefulSet } from '../../children/workload.ts'
import type { SyncContext } from '../../sync/context.ts'
import { lastApplied } from '../../sync/last-applied.ts'
import { type Fields, fieldsOf, type KubeObject, listOf } from '../../base/kube.ts'
import { embeddingNames } from '../../children/names.ts'
import { canonicalJson, byText } from '../../../schemas/index.ts'

type Context = SyncContext<'EmbeddingServer'>

const app = 'embeddingserver'
const component = 'embedding-server'
export const container = 'embedding'
const dataDirectory = '/data'
/** Name of the volume, and prefix of its claim's name. */
const modelCache = 'model-cache'

export function generatedTemplate(context: Context): PodTemplateSpec {
  const { parent, name, settings } = context
  const { spec } = parent
  const selector = selectorLabels(app, name, component)
  const { statefulSet: overrides } = spec.resourceOverrides ?? {}
  const metadata = overrides?.podTemplateMetadataOverrides
  const cached = claimTemplates(context).length > 0
  const revision = spec.hfTokenSecretRef && context.secretRevision([spec.hfTokenSecretRef])
  return {
    metadata: {
      labels: { ...metadata?.labels, ...selector },
      annotations: {
        ...metadata?.annotations,
        ...(revision && { 'gatehouse.dev/secrets-revision': revision }),
      },
    },
    spec: {
      serviceAccountName: embeddingNames(name).server,
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      securityContext: podSecurity(settings),
      ...pullSecrets(undefined, settings.imagePullSecrets),
      containers: [
        {
          name: container,
          image: spec.image,
          imagePullPolicy: spec.imagePullPolicy,
          args: ['--model-id', spec.model, '--port', String(spec.port), ...(spec.args ?? [])],
          env: environment(parent, cached),
          ports: [{ name: 'http', containerPort: spec.port, protocol: 'TCP' }],
          ...(spec.resources && { resources: spec.resources }),
          // Allows a long start, because the server listens only after it has loaded its model, which may require a
          // large download.
          startupProbe: httpProbe('/health', { period: 10, timeout: 5, failures: 180 }),
          livenessProbe: httpProbe('/health', { period: 30, timeout: 10, failures: 3 }),
          readinessProbe: httpProbe('/health', { period: 10, timeout: 5, failures: 3 }),
          volumeMounts: [
            { name: cached ? modelCache : 'model', mountPath: dataDirectory },
            { name: 'tmp', mountPath: '/tmp' },
          ],
          securityContext: { ...serverContainerSecurity(settings), readOnlyRootFilesystem: true },
        },
      ],
      volumes: [...(cached ? [] : [{ name: 'model', emptyDir: {} }]), { name: 'tmp', emptyDir: {} }],
    },
  }
}

export function podTemplate(context: Context): PodTemplateResult {
  const { podTemplateSpec } = context.parent.spec
  const selector = selectorLabels(app, context.name, component)
  const claims = claimTemplates(context).length > 0 ? [modelCache] : []
  return mergePodTemplate(generatedTemplate(context), { user: podTemplateSpec, container, selector, claims })
}

function environment({ spec }: EmbeddingServer, cached: boolean): ContainerEnvVar[] {
  const own: ContainerEnvVar[] = [
    { name: 'MODEL_ID', value: spec.model },
    { name: 'HF_HOME', value: dataDirectory },
    ...(cached ? [] : [{ name: 'HUGGINGFACE_HUB_CACHE', value: dataDirectory }]),
    ...(spec.hfTokenSecretRef
      ? [{ name: 'HF_TOKEN', valueFrom: { secretKeyRef: spec.hfTokenSecretRef } }]
      : []),
  ]
  const given = (spec.env ?? []).map(({ name, value }): ContainerEnvVar => ({ name, value }))
  const byName = new Map([...own, ...given].map((entry) => [entry.name, entry]))
  return [...byName.values()].sort((a, b) => byText(a.name, b.name))
}

export function childrenOf(context: Context, template: Fields): KubeObject[] {
  const { parent, name, namespace, settings } = context
  const { spec } = parent
  const { server } = embeddingNames(name)
  const labels = ownLabels(app, name, component)
  const selector = selectorLabels(app, name, component)
  const { statefulSet: setOverrides, service: serviceOverrides } = spec.resourceOverrides ?? {}
  return [
    serviceAccount({ name: server, namespace, labels }, settings.imagePullSecrets),
    service(
      {
        name: server,
        namespace,
        labels: { ...serviceOverrides?.labels, ...labels },
        ...(serviceOverrides?.annotations && { annotations: serviceOverrides.annotations }),
      },
      { selector, port: spec.port, targetPort: 'http' },
    ),
    statefulSet(
      {
        name: server,
        namespace,
        labels: { ...setOverrides?.labels, ...labels },
        ...(setOverrides?.annotations && { annotations: setOverrides.annotations }),
      },
      {
        selector,
        template,
        serviceName: server,
        replicas: spec.replicas,
        volumeClaimTemplates: claimTemplates(context),
      },
    ),
  ]
}

/** Returns the volume claims of an existing StatefulSet, which are immutable, or otherwise the requested claims. */
function claimTemplates(context: Context): readonly Fields[] {
  return runningClaims(context) ?? wantedClaims(context)
}

function wantedClaims(context: Context): readonly Fields[] {
  const { modelCache: cache } = context.parent.spec
  return cache?.enabled ? [claim(cache, context)] : []
}

function runningClaims(context: Context): readonly Fields[] | undefined {
  const observed = context.child('StatefulSet', embeddingNames(context.name).server)
  return observed && listOf(fieldsOf(lastApplied(observed)?.['spec'])['volumeClaimTemplates']).map(fieldsOf)
}

/** Reports whether the running model cache matches the requested one. */
export function checkModelCache(context: Context): void {
  const running = runningClaims(context)
  const same = running === undefined || canonicalJson(running) === canonicalJson(wantedClaims(context))
  if (same)
    context.conditions.set(
      'ModelCacheApplied',
      'True',
      'ModelCacheApplied',
      'The model cache matches the spec',
    )
  else {
    context.conditions.set(
      'ModelCacheApplied',
      'False',
      'RecreateRequired',
      'Volume claims of a StatefulSet are immutable; delete and recreate this EmbeddingServer to change its model cache',
    )
  }
}

function claim(cache: ModelCache, context: Context): Fields {
  const overrides = context.parent.spec.resourceOverrides?.persistentVolumeClaim
  const labels = { ...overrides?.labels, ...selectorLabels(app, context.name, component) }
  // The list contains every field that the API server would default, because the comparison covers the whole list.
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: {
      name: modelCache,
      labels,
      ...(overrides?.annotations && { annotations: overrides.annotations }),
    },
    spec: {
      accessModes: [cache.accessMode],
      resources: { requests: { storage: canonicalQuantity(cache.size) } },
      ...(cache.storageClassName !== undefined && { storageClassName: cache.storageClassName }),
      volumeMode: 'Filesystem',
    },
    status: { phase: 'Pending' },
  }
}
