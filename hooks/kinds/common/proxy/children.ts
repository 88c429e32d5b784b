/**
 * Builds a proxy's children: the service account, configuration, Deployment and Service. The pods have no Kubernetes
 * API access, with one exception. A proxy that validates service account tokens gets its own account's token to read
 * the cluster's keys.
 */
import {
  type MetadataOverrides,
  type ResourceRequirements,
  authServerFile,
  hashOf,
} from '../../../../schemas/index.ts'
import {
  availability,
  preStopDelay,
  shutdownGrace,
  topologySpread,
  terminationSeconds,
} from '../../../children/serving/availability.ts'
import { ownLabels, selectorLabels } from '../../../children/labels.ts'
import { type ChildMeta, configMap, service, serviceAccount } from '../../../children/objects.ts'
import {
  type ContainerSpec,
  httpProbe,
  type PodTemplateSpec,
  pullSecrets,
  type VolumeSpec,
} from '../../../children/pod.ts'
import { mergePodTemplate } from '../../../children/pod-template.ts'
import { podSecurity, runtimeContainerSecurity } from '../../../children/security.ts'
import { deployment, replicasToApply } from '../../../children/workload.ts'
import type { SyncFailure } from '../../../sync/conditions.ts'
import type { KubeObject, StringMap } from '../../../base/kube.ts'
import { PodNeeds } from '../../../runtime-config/needs.ts'
import { toYaml } from '../../../children/yaml.ts'
import { mergeFailure } from '../pod-template.ts'
import { exposureChildren } from '../exposure.ts'
import { addTlsFiles, serving } from '../serving-tls.ts'
import type { BuiltProxyConfig } from './config.ts'
import type { ProxyContext } from './references.ts'

const configDirectory = '/etc/gatehouse/proxy'
export const proxyFile = 'proxy.yaml'
export const proxyContainer = 'gatehouse'

/** The parts of a proxy's workload that depend on the kind. */
export interface ProxyWorkload {
  readonly context: ProxyContext
  /** Kind in lowercase, for labels. */
  readonly app: string
  readonly names: { readonly proxy: string; readonly proxyConfig: string }
  /** Value of the component label; set if the resource has a workload in addition to the proxy. */
  readonly component?: string
  readonly replicas: number | undefined
  /** Name of an existing service account to use. */
  readonly serviceAccount?: string | undefined
  readonly resources?: ResourceRequirements | undefined
  readonly podTemplateSpec?: unknown
  /** Pod annotations to add to the generated annotations. */
  readonly annotations?: StringMap
  /**
   * Additional containers in the proxy's pod, with their volumes. If possible, a rollout runs only one pod with these
   * containers at a time.
   */
  readonly sidecar?:
    | { readonly containers: readonly ContainerSpec[]; readonly volumes: readonly VolumeSpec[] }
    | undefined
}

type ProxyChildren =
  | { readonly children: readonly KubeObject[]; readonly failure?: undefined }
  | { readonly children?: undefined; readonly failure: SyncFailure }

/** Returns flags instead of a file for a proxy that only forwards. */
function flagsOf({ file, authServer }: BuiltProxyConfig): readonly string[] | undefined {
  if (!file || authServer || file.targetUri === undefined) return undefined
  const {
    name: _name,
    targetUri,
    host: _host,
    port: _port,
    transport: _transport,
    proxyMode: _mode,
    ...rest
  } = file
  return Object.keys(rest).length === 0 ? [`--target-uri=${targetUri}`] : undefined
}

export function proxyChildren(
  config: BuiltProxyConfig,
  needs: PodNeeds,
  workload: ProxyWorkload,
): ProxyChildren {
  const { context, app, names, component, serviceAccount: account, sidecar } = workload
  const { name, namespace, settings, spec } = context
  const { autoscaling, proxyPort: port, resourceOverrides, sessionAffinity } = spec
  const flags = flagsOf(config)
  const files = flags ? undefined : filesOf(config)
  if (files) needs.configFiles('proxy-config', configDirectory, names.proxyConfig)
  commonNeeds(needs)
  const target = flags ?? [`--config=${configDirectory}/${proxyFile}`]
  const args = ['proxy', ...target, '--host=0.0.0.0', `--port=${port}`, '--', name]
  const restart = hashOf({ files: files ?? {}, revision: needs.revisionHash ?? '' })
  const generated = template(workload, needs, { args, restart, accountToken: config.accountToken })
  const selector = selectorLabels(app, name, component)
  const merged = mergePodTemplate(generated, {
    user: workload.podTemplateSpec,
    container: proxyContainer,
    selector,
  })
  if (merged.violations) return { failure: mergeFailure(merged.violations) }
  const meta = { name: names.proxy, namespace, labels: ownLabels(app, name, component) }
  const count = { replicas: workload.replicas, autoscaling }
  const observed = context.child('Deployment', names.proxy)
  const { secure } = serving(context)
  const children = [
    ...(account === undefined ? [serviceAccount(meta, settings.imagePullSecrets)] : []),
    ...(files ? [configMap({ ...meta, name: names.proxyConfig }, files)] : []),
    deployment(withOverrides(meta, resourceOverrides?.proxyDeployment), {
      selector,
      template: merged.template,
      replicas: replicasToApply(count, observed),
      ...(sidecar && { strategy: oneAtATime }),
    }),
    ...availability(meta, { ...count, kind: 'Deployment', selector, container: proxyContainer, observed }),
    ...exposureChildren(context, meta, { port, secure }),
    service(withOverrides(meta, resourceOverrides?.proxyService), {
      selector,
      port,
      targetPort: 'http',
      sessionAffinity,
      secure,
    }),
  ]
  return { children }
}

/** The strategy is not Recreate, which would leave the rolling update settings that the API server defaulted. */
const oneAtATime = { type: 'RollingUpdate', rollingUpdate: { maxSurge: 0, maxUnavailable: 1 } } as const

function filesOf({ file, authServer }: BuiltProxyConfig): StringMap {
  return {
    ...(file && { [proxyFile]: toYaml(file) }),
    ...(authServer && { [authServerFile]: toYaml(authServer) }),
  }
}

/** Adds the environment and volumes that every proxy has. */
function commonNeeds(needs: PodNeeds): void {
  needs.scratch('tmp', '/tmp')
  needs.literal('GATEHOUSE_SHUTDOWN_GRACE', shutdownGrace)
  needs.literal('HOME', '/tmp')
  needs.literal('XDG_CONFIG_HOME', '/tmp')
}

/** Returns the pod without the parts that references add, for checking a podTemplateSpec. */
export function proxyTemplate(workload: ProxyWorkload): PodTemplateSpec {
  const needs = new PodNeeds()
  commonNeeds(needs)
  addTlsFiles(workload.context, needs)
  return template(workload, needs, { args: [], restart: '', accountToken: false })
}

/** Adds the user's labels and annotations. Generated labels take precedence. */
function withOverrides(meta: ChildMeta, overrides: MetadataOverrides | undefined): ChildMeta {
  return {
    ...meta,
    labels: { ...overrides?.labels, ...meta.labels },
    ...(overrides?.annotations && { annotations: overrides.annotations }),
  }
}

interface ProxyPodInput {
  readonly args: readonly string[]
  /** The proxy restarts when this value changes. */
  readonly restart: string
  readonly accountToken: boolean
}

function template(
  { context, app, names, component, sidecar, ...workload }: ProxyWorkload,
  needs: PodNeeds,
  { args, restart, accountToken }: ProxyPodInput,
): PodTemplateSpec {
  const { settings, spec } = context
  const overrides = spec.resourceOverrides?.proxyDeployment
  const selector = selectorLabels(app, context.name, component)
  const served = serving(context)
  const own = new Set(needs.env.map((entry) => entry.name))
  const extra = (overrides?.env ?? []).filter((entry) => !own.has(entry.name))
  const metadata = overrides?.podTemplateMetadataOverrides
  return {
    metadata: {
      labels: { ...metadata?.labels, ...selector },
      annotations: {
        ...metadata?.annotations,
        ...workload.annotations,
        ...served.annotations,
        'gatehouse.dev/runconfig-checksum': restart,
      },
    },
    spec: {
      serviceAccountName: workload.serviceAccount ?? names.proxy,
      automountServiceAccountToken: accountToken,
      enableServiceLinks: false,
      terminationGracePeriodSeconds: terminationSeconds,
      topologySpreadConstraints: topologySpread(selector),
      securityContext: podSecurity(settings),
      ...pullSecrets(overrides?.imagePullSecrets, settings.imagePullSecrets),
      containers: [
        served.container({
          name: proxyContainer,
          image: settings.runtimeImage,
          imagePullPolicy: 'IfNotPresent',
          args,
          env: [...extra, ...needs.env],
          ports: [{ name: 'http', containerPort: spec.proxyPort, protocol: 'TCP' }],
          startupProbe: httpProbe('/health', { period: 2, timeout: 3, failures: 60 }),
          livenessProbe: httpProbe('/health', { delay: 30, period: 10, timeout: 5, failures: 3 }),
          readinessProbe: httpProbe('/health', { period: 5, timeout: 3, failures: 3 }),
          // An idle proxy uses about 100 MiB (docs/evidence/performance.md, "Start, size and memory").
          resources: workload.resources ?? {
            requests: { cpu: '50m', memory: '128Mi' },
            limits: { cpu: '500m', memory: '256Mi' },
          },
          lifecycle: preStopDelay,
          volumeMounts: needs.mounts,
          securityContext: runtimeContainerSecurity(settings),
        }),
        ...(sidecar?.containers ?? []),
      ],
      volumes: [...needs.volumes, ...(sidecar?.volumes ?? [])],
    },
  }
}
