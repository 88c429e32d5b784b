/**
 * Children of an MCPServer: the server itself (StatefulSet, two Services, service account) and the proxy in front of it
 * (Deployment, Service, service account). Neither pod may use the Kubernetes API.
 */
import type { MCPServer } from '../../../schemas/index.ts'
import { type Labels, ownLabels, selectorLabels } from '../../children/labels.ts'
import { service, serviceAccount } from '../../children/objects.ts'
import { type EnvVar, httpProbe, type PodTemplate, unlessEmpty, type Volume } from '../../children/pod.ts'
import { mergePodTemplate, type PodTemplateResult } from '../../children/pod-template.ts'
import { podSecurity, runtimeContainerSecurity, serverContainerSecurity } from '../../children/security.ts'
import { deployment, replicasToApply, statefulSet } from '../../children/workload.ts'
import type { SyncContext } from '../../context.ts'
import { byText, type Fields, type KubeObject } from '../../kube.ts'
import { serverNames, serviceUrl } from '../../names.ts'

type Context = SyncContext<MCPServer>

const app = 'mcpserver'
export const serverContainer = 'mcp'
export const restartedAt = 'mcpserver.gatehouse.dev/restarted-at'

/** Port on which the server itself listens. */
export function serverPort({ spec }: MCPServer): number {
  return spec.mcpPort ?? 8080
}

/** The generated server pod under the user's podTemplateSpec. */
export function serverTemplate(context: Context): PodTemplateResult {
  const { parent, name, settings } = context
  const { spec } = parent
  const selector = selectorLabels(app, name, 'server')
  const names = serverNames(name)
  const volumes = spec.volumes ?? []
  const generated: PodTemplate = {
    metadata: { labels: selector, ...restartAnnotation(context) },
    spec: {
      serviceAccountName: spec.serviceAccount ?? names.server,
      automountServiceAccountToken: spec.serviceAccount !== undefined,
      enableServiceLinks: false,
      securityContext: podSecurity(settings),
      ...unlessEmpty('imagePullSecrets', pullSecrets(context)),
      containers: [
        {
          name: serverContainer,
          image: spec.image,
          ...unlessEmpty('args', spec.args ?? []),
          ...unlessEmpty('env', serverEnvironment(parent)),
          ports: [{ name: 'http', containerPort: serverPort(parent), protocol: 'TCP' }],
          ...(spec.resources && { resources: spec.resources as Fields }),
          ...unlessEmpty(
            'volumeMounts',
            volumes.map(({ name, mountPath, readOnly }) => ({
              name,
              mountPath,
              ...(readOnly && { readOnly }),
            })),
          ),
          readinessProbe: { tcpSocket: { port: 'http' }, periodSeconds: 5 },
          securityContext: serverContainerSecurity(settings),
        },
      ],
      ...unlessEmpty(
        'volumes',
        volumes.map(({ name, hostPath }): Volume => ({ name, hostPath: { path: hostPath } })),
      ),
    },
  }
  return mergePodTemplate(generated, spec.podTemplateSpec, serverContainer, selector)
}

function serverEnvironment({ spec }: MCPServer): EnvVar[] {
  const literal = (spec.env ?? []).map(({ name, value }): EnvVar => ({ name, value }))
  const secret = (spec.secrets ?? []).map(
    ({ name, key, targetEnvName }): EnvVar => ({
      name: targetEnvName ?? key,
      valueFrom: { secretKeyRef: { name, key } },
    }),
  )
  const byName = new Map([...literal, ...secret].map((entry) => [entry.name, entry]))
  return [...byName.values()].sort((a, b) => byText(a.name, b.name))
}

function pullSecrets(context: Context): { name: string }[] {
  return [...new Set(context.settings.imagePullSecrets)].map((name) => ({ name }))
}

function restartAnnotation(context: Context): { annotations?: Record<string, string> } {
  const value = context.stored.metadata.annotations?.[restartedAt]
  return value === undefined ? {} : { annotations: { [restartedAt]: value } }
}

/** Everything but the proxy's pod, whose template depends on what it has to do. */
export function serverChildren(context: Context, template: Fields): KubeObject[] {
  const { name, namespace, parent } = context
  const names = serverNames(name)
  const labels = ownLabels(app, name, 'server')
  const selector = selectorLabels(app, name, 'server')
  const port = serverPort(parent)
  const target = { selector, port, targetPort: 'http' }
  const observed = context.child('StatefulSet', names.server)
  return [
    ...(parent.spec.serviceAccount === undefined
      ? [serviceAccount({ name: names.server, namespace, labels }, context.settings.imagePullSecrets)]
      : []),
    service({ name: names.headless, namespace, labels }, { ...target, headless: true }),
    service({ name: names.server, namespace, labels }, { ...target, sessionAffinity: 'ClientIP' }),
    statefulSet(
      { name: names.server, namespace, labels },
      {
        selector,
        template,
        serviceName: names.headless,
        replicas: replicasToApply(parent.spec.backendReplicas, observed),
      },
    ),
  ]
}

export interface ProxyPod {
  readonly args: readonly string[]
  readonly env: readonly EnvVar[]
  readonly volumes: readonly Volume[]
  readonly mounts: readonly {
    readonly name: string
    readonly mountPath: string
    readonly readOnly?: boolean
  }[]
  readonly annotations: Labels
}

/** Deployment, Service and service account of the proxy. */
export function proxyChildren(context: Context, pod: ProxyPod): KubeObject[] {
  const { name, namespace, parent } = context
  const { spec } = parent
  const names = serverNames(name)
  const { proxyDeployment, proxyService } = spec.resourceOverrides ?? {}
  const labels = ownLabels(app, name, 'proxy')
  const selector = selectorLabels(app, name, 'proxy')
  const observed = context.child('Deployment', names.proxy)
  return [
    serviceAccount({ name: names.proxy, namespace, labels }, context.settings.imagePullSecrets),
    deployment(
      {
        name: names.proxy,
        namespace,
        labels: { ...proxyDeployment?.labels, ...labels },
        ...(proxyDeployment?.annotations && { annotations: proxyDeployment.annotations }),
      },
      {
        selector,
        template: proxyTemplate(context, pod, selector) as unknown as Fields,
        replicas: replicasToApply(proxyReplicas(parent), observed),
      },
    ),
    service(
      {
        name: names.proxy,
        namespace,
        labels: { ...proxyService?.labels, ...labels },
        ...(proxyService?.annotations && { annotations: proxyService.annotations }),
      },
      { selector, port: spec.proxyPort, targetPort: 'http', sessionAffinity: spec.sessionAffinity },
    ),
  ]
}

/** A stdio server has one process per session and no place to find it again: one proxy at most. */
export function proxyReplicas({ spec }: MCPServer): number | undefined {
  return spec.transport === 'stdio' && spec.replicas !== undefined
    ? Math.min(spec.replicas, 1)
    : spec.replicas
}

function proxyTemplate(context: Context, pod: ProxyPod, selector: Labels): PodTemplate {
  const { parent, name, settings } = context
  const overrides = parent.spec.resourceOverrides?.proxyDeployment
  const metadata = overrides?.podTemplateMetadataOverrides
  const annotations = {
    ...metadata?.annotations,
    ...restartAnnotation(context).annotations,
    ...pod.annotations,
  }
  const own = new Set(pod.env.map((entry) => entry.name))
  const extra = (overrides?.env ?? []).filter((entry) => !own.has(entry.name))
  const secrets = [
    ...(overrides?.imagePullSecrets ?? []).map((item) => item.name),
    ...settings.imagePullSecrets,
  ]
  return {
    metadata: {
      labels: { ...metadata?.labels, ...selector },
      ...(Object.keys(annotations).length > 0 && { annotations }),
    },
    spec: {
      serviceAccountName: serverNames(name).proxy,
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      terminationGracePeriodSeconds: 30,
      securityContext: podSecurity(settings),
      ...unlessEmpty(
        'imagePullSecrets',
        [...new Set(secrets)].filter((item) => item !== '').map((item) => ({ name: item })),
      ),
      containers: [
        {
          name: 'gatehouse',
          image: settings.runtimeImage,
          imagePullPolicy: 'IfNotPresent',
          args: pod.args,
          ...unlessEmpty('env', [...extra, ...pod.env]),
          ports: [{ name: 'http', containerPort: parent.spec.proxyPort, protocol: 'TCP' }],
          startupProbe: httpProbe('/health', 5, 5, 3, 18),
          livenessProbe: httpProbe('/health', 30, 10, 5, 3),
          readinessProbe: httpProbe('/health', 5, 5, 3, 3),
          volumeMounts: [...pod.mounts, { name: 'tmp', mountPath: '/tmp' }],
          securityContext: runtimeContainerSecurity(settings),
        },
      ],
      volumes: [...pod.volumes, { name: 'tmp', emptyDir: {} }],
    },
  }
}

/** Address of the server's own Service, without path. */
export function serverUrl(context: Context): string {
  const { name, namespace, settings, parent } = context
  return serviceUrl(serverNames(name).server, namespace, settings.clusterDomain, serverPort(parent))
}
