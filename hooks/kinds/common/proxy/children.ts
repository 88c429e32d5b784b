/**
 * Children of a proxy: service account, configuration, Deployment and Service. The pods get no Kubernetes API access;
 * only a proxy that validates service account tokens gets its own account's token, to read the cluster's keys.
 */
import {
  type MetadataOverrides,
  type ProxyDeploymentOverrides,
  type ResourceRequirements,
  authServerFile,
  hashOf,
} from '../../../../schemas/index.ts'
import {
  availability,
  leaving,
  type Scaling,
  shutdownGrace,
  spread,
  terminationSeconds,
} from '../../../children/serving/availability.ts'
import { type ObjectLabels, ownLabels, selectorLabels } from '../../../children/labels.ts'
import { configMap, service, serviceAccount } from '../../../children/objects.ts'
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
import type { HookSettings } from '../../../base/settings.ts'
import { toYaml } from '../../../children/yaml.ts'
import { mergeFailure } from '../pod-template.ts'
import { exposureChildren } from '../exposure.ts'
import { addTlsFiles, type Serving, serving } from '../serving-tls.ts'
import type { BuiltProxyConfig } from './config.ts'
import { type ProxyContext, configDirectory, proxyContainer, proxyFile } from './spec.ts'

interface ProxyChildrenOptions {
  readonly settings: HookSettings
  readonly namespace: string
  /** Name of the resource. */
  readonly owner: string
  /** Name of Deployment, Service and generated service account. */
  readonly name: string
  readonly configName: string
  readonly labels: ObjectLabels
  readonly selector: ObjectLabels
  readonly port: number
  readonly sessionAffinity: 'ClientIP' | 'None'
  readonly replicas: number | undefined
  readonly autoscaling: Scaling | undefined
  readonly observed: KubeObject | undefined
  /** The way from outside. */
  readonly exposed: readonly KubeObject[]
  /** Existing service account. */
  readonly serviceAccount?: string | undefined
  readonly resources?: ResourceRequirements | undefined
  readonly deploymentOverrides: ProxyDeploymentOverrides | undefined
  readonly serviceOverrides: MetadataOverrides | undefined
  readonly podTemplateSpec?: unknown
  /** Annotations of the pods besides the generated ones. */
  readonly annotations: StringMap
  readonly serving: Serving
  /** What runs beside the proxy in its pod. Of such pods there is one at a time, as far as a rollout allows. */
  readonly beside?:
    | { readonly containers: readonly ContainerSpec[]; readonly volumes: readonly VolumeSpec[] }
    | undefined
}

/** What follows alike from every manifest of a proxy; `component` where the resource has another workload beside it. */
export function proxyOptions(
  context: ProxyContext,
  app: string,
  names: { readonly proxy: string; readonly proxyConfig: string },
  component?: string,
) {
  const { name, namespace, settings, spec } = context
  const labels = ownLabels(app, name, component)
  const { proxyDeployment, proxyService } = spec.resourceOverrides ?? {}
  return {
    settings,
    namespace,
    owner: name,
    name: names.proxy,
    configName: names.proxyConfig,
    labels,
    selector: selectorLabels(app, name, component),
    port: spec.proxyPort,
    sessionAffinity: spec.sessionAffinity,
    replicas: spec.replicas,
    autoscaling: spec.autoscaling,
    exposed: exposureChildren(
      context,
      spec.exposure,
      { name: names.proxy, namespace, labels },
      { port: spec.proxyPort, secure: serving(context).secure },
    ),
    observed: context.child('Deployment', names.proxy),
    serving: serving(context),
    deploymentOverrides: proxyDeployment,
    serviceOverrides: proxyService,
  }
}

type ProxyChildren =
  | { readonly children: readonly KubeObject[]; readonly failure?: undefined }
  | { readonly children?: undefined; readonly failure: SyncFailure }

/** A proxy that only forwards needs no file: its settings are four flags. */
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
  front: BuiltProxyConfig,
  needs: PodNeeds,
  options: ProxyChildrenOptions,
): ProxyChildren {
  const { name, namespace, labels, selector, port, settings } = options
  const flags = flagsOf(front)
  const files = flags ? undefined : filesOf(front)
  if (files) needs.configFiles('proxy-config', configDirectory, options.configName)
  commonNeeds(needs)
  const target = flags ?? [`--config=${configDirectory}/${proxyFile}`]
  const args = ['proxy', ...target, '--host=0.0.0.0', `--port=${port}`, '--', options.owner]
  const restart = hashOf({ files: files ?? {}, revision: needs.revisionHash ?? '' })
  const generated = template(options, needs, { args, restart, accountToken: front.accountToken })
  const merged = mergePodTemplate(generated, options.podTemplateSpec, proxyContainer, selector)
  if (merged.violations) return { failure: mergeFailure(merged.violations) }
  const { deploymentOverrides, serviceOverrides } = options
  const children = [
    ...(options.serviceAccount === undefined
      ? [serviceAccount({ name, namespace, labels }, settings.imagePullSecrets)]
      : []),
    ...(files ? [configMap({ name: options.configName, namespace, labels }, files)] : []),
    deployment(withOverrides({ name, namespace, labels }, deploymentOverrides), {
      selector,
      template: merged.template,
      replicas: replicasToApply(options, options.observed),
      ...(options.beside && { strategy: oneAfterTheOther }),
    }),
    ...availability(
      { name, namespace, labels },
      { ...options, kind: 'Deployment', container: proxyContainer },
    ),
    ...options.exposed,
    service(withOverrides({ name, namespace, labels }, serviceOverrides), {
      selector,
      port,
      targetPort: 'http',
      sessionAffinity: options.sessionAffinity,
      secure: options.serving.secure,
    }),
  ]
  return { children }
}

/** Not Recreate: what the API server filled in for a rolling update could not be taken away again. */
const oneAfterTheOther = { type: 'RollingUpdate', rollingUpdate: { maxSurge: 0, maxUnavailable: 1 } } as const

function filesOf({ file, authServer }: BuiltProxyConfig): StringMap {
  return {
    ...(file && { [proxyFile]: toYaml(file) }),
    ...(authServer && { [authServerFile]: toYaml(authServer) }),
  }
}

/** Adds the environment and volumes of every proxy. */
function commonNeeds(needs: PodNeeds): void {
  needs.scratch('tmp', '/tmp')
  needs.literal('GATEHOUSE_SHUTDOWN_GRACE', shutdownGrace)
  needs.literal('HOME', '/tmp')
  needs.literal('XDG_CONFIG_HOME', '/tmp')
}

/** Returns the pod without the parts that references add, for checking a podTemplateSpec. */
export function proxyTemplate(context: ProxyContext, options: ProxyChildrenOptions): PodTemplateSpec {
  const needs = new PodNeeds()
  commonNeeds(needs)
  addTlsFiles(context, needs)
  return template(options, needs, { args: [], restart: '', accountToken: false })
}

interface Meta {
  readonly name: string
  readonly namespace: string
  readonly labels: ObjectLabels
}

/** The user's labels and annotations beside ours, which win. */
function withOverrides(meta: Meta, overrides: MetadataOverrides | undefined) {
  return {
    ...meta,
    labels: { ...overrides?.labels, ...meta.labels },
    ...(overrides?.annotations && { annotations: overrides.annotations }),
  }
}

interface ProxyPodInput {
  readonly args: readonly string[]
  /** Changes when the proxy must restart. */
  readonly restart: string
  readonly accountToken: boolean
}

function template(
  options: ProxyChildrenOptions,
  needs: PodNeeds,
  { args, restart, accountToken }: ProxyPodInput,
): PodTemplateSpec {
  const { settings, deploymentOverrides: overrides } = options
  const own = new Set(needs.env.map((entry) => entry.name))
  const extra = (overrides?.env ?? []).filter((entry) => !own.has(entry.name))
  const metadata = overrides?.podTemplateMetadataOverrides
  return {
    metadata: {
      labels: { ...metadata?.labels, ...options.selector },
      annotations: {
        ...metadata?.annotations,
        ...options.annotations,
        ...options.serving.annotations,
        'gatehouse.dev/runconfig-checksum': restart,
      },
    },
    spec: {
      serviceAccountName: options.serviceAccount ?? options.name,
      automountServiceAccountToken: accountToken,
      enableServiceLinks: false,
      terminationGracePeriodSeconds: terminationSeconds,
      topologySpreadConstraints: spread(options.selector),
      securityContext: podSecurity(settings),
      ...pullSecrets(overrides?.imagePullSecrets, settings.imagePullSecrets),
      containers: [
        options.serving.container({
          name: proxyContainer,
          image: settings.runtimeImage,
          imagePullPolicy: 'IfNotPresent',
          args,
          env: [...extra, ...needs.env],
          ports: [{ name: 'http', containerPort: options.port, protocol: 'TCP' }],
          startupProbe: httpProbe('/health', 0, 2, 3, 60),
          livenessProbe: httpProbe('/health', 30, 10, 5, 3),
          readinessProbe: httpProbe('/health', 0, 5, 3, 3),
          // A proxy that waits has about 100 MiB (docs/performance.md, "Start, size and memory").
          resources: options.resources ?? {
            requests: { cpu: '50m', memory: '128Mi' },
            limits: { cpu: '500m', memory: '256Mi' },
          },
          lifecycle: leaving,
          volumeMounts: needs.mounts,
          securityContext: runtimeContainerSecurity(settings),
        }),
        ...(options.beside?.containers ?? []),
      ],
      volumes: [...needs.volumes, ...(options.beside?.volumes ?? [])],
    },
  }
}
