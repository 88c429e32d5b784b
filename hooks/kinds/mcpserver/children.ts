/**
 * Builds an MCPServer's server: a StatefulSet, two Services, a service account, and a network policy that admits only
 * the proxy. The pod has no Kubernetes API access unless the resource sets its own service account. An attached server
 * does not listen, so it has no Services, and its policy admits no traffic.
 */
import { byText, hashOf, type MCPServer } from '../../../schemas/index.ts'
import { availability, topologySpread } from '../../children/serving/availability.ts'
import { ownLabels, selectorLabels } from '../../children/labels.ts'
import { configMap, service, serviceAccount } from '../../children/objects.ts'
import {
  type ContainerSpec,
  type ContainerEnvVar,
  type PodTemplateSpec,
  pullSecrets,
  unlessEmpty,
  type VolumeSpec,
} from '../../children/pod.ts'
import { mergePodTemplate, type PodTemplateResult } from '../../children/pod-template.ts'
import { podSecurity, serverContainerSecurity } from '../../children/security.ts'
import { replicasToApply, statefulSet } from '../../children/workload.ts'
import type { SyncContext } from '../../sync/context.ts'
import type { Fields, KubeObject, StringMap } from '../../base/kube.ts'
import { serverNames, serviceUrl } from '../../children/names.ts'
import { isAttached, type Stdio } from './stdio.ts'
import { serverContainer, serverPort } from './bridge.ts'

type Context = SyncContext<'MCPServer'>

export const app = 'mcpserver'
const restartedAt = 'mcpserver.gatehouse.dev/restarted-at'

/** Returns the URL of the server's own Service, without a path. */
export function serverUrl(context: Context): string {
  const { name, namespace, settings, parent } = context
  return serviceUrl(serverNames(name).server, namespace, settings.clusterDomain, serverPort(parent))
}

/** Copies the requested restart time to every pod, which triggers a rollout. */
export function restartAnnotations(context: Context): StringMap {
  const value = context.stored.metadata.annotations?.[restartedAt]
  return value === undefined ? {} : { [restartedAt]: value }
}

/** Returns the server pod before the user's podTemplateSpec is merged into it. */
export function generatedTemplate(context: Context, { attach }: Stdio, revision: string): PodTemplateSpec {
  const { parent, name, settings } = context
  const { spec } = parent
  const selector = selectorLabels(app, name, 'server')
  const volumes = spec.volumes ?? []
  const container: ContainerSpec = {
    name: serverContainer,
    image: spec.image,
    ...unlessEmpty('args', spec.args ?? []),
    ...unlessEmpty('env', serverEnvironment(parent)),
    ...(!attach && { ports: [{ name: 'http', containerPort: serverPort(parent), protocol: 'TCP' }] }),
    ...(spec.resources && { resources: spec.resources }),
    ...unlessEmpty(
      'volumeMounts',
      volumes.map(({ name, mountPath, readOnly }) => ({ name, mountPath, ...(readOnly && { readOnly }) })),
    ),
    ...(!attach && { readinessProbe: { tcpSocket: { port: 'http' }, periodSeconds: 5 } }),
    securityContext: serverContainerSecurity(settings),
  }
  return {
    metadata: {
      labels: selector,
      annotations: { ...restartAnnotations(context), 'gatehouse.dev/runconfig-checksum': revision },
    },
    spec: {
      serviceAccountName: spec.serviceAccount ?? serverNames(name).server,
      automountServiceAccountToken: spec.serviceAccount !== undefined,
      enableServiceLinks: false,
      topologySpreadConstraints: topologySpread(selector),
      securityContext: podSecurity(settings),
      ...pullSecrets(undefined, settings.imagePullSecrets),
      containers: [container],
      ...unlessEmpty(
        'volumes',
        volumes.map(({ name, hostPath }): VolumeSpec => ({ name, hostPath: { path: hostPath } })),
      ),
    },
  }
}

/**
 * Returns the server pod with the user's podTemplateSpec, and with the stdio bridge or the changes for the attach
 * sidecar.
 */
export function serverTemplate(context: Context, stdio: Stdio): PodTemplateResult {
  const { bridge, attach } = stdio
  const revision = hashOf([context.secretRevision(context.spec.secrets ?? []), bridge?.files ?? {}])
  const { podTemplateSpec } = context.parent.spec
  const selector = selectorLabels(app, context.name, 'server')
  const generated = generatedTemplate(context, stdio, revision)
  const merged = mergePodTemplate(generated, { user: podTemplateSpec, container: serverContainer, selector })
  const applied = bridge ?? attach
  return merged.template && applied ? { template: applied.apply(merged.template) } : merged
}

function serverEnvironment({ spec }: MCPServer): ContainerEnvVar[] {
  const literal = (spec.env ?? []).map(({ name, value }): ContainerEnvVar => ({ name, value }))
  const secret = (spec.secrets ?? []).map(
    ({ name, key, targetEnvName }): ContainerEnvVar => ({
      name: targetEnvName ?? key,
      valueFrom: { secretKeyRef: { name, key } },
    }),
  )
  const byName = new Map([...literal, ...secret].map((entry) => [entry.name, entry]))
  return [...byName.values()].sort((a, b) => byText(a.name, b.name))
}

/**
 * Returns the server's replica count. Limits an attached server to one replica, because a proxy attaches to only one
 * pod.
 */
export function serverReplicas(context: Context): number | undefined {
  const { backendReplicas } = context.parent.spec
  return isAttached(context) ? Math.min(backendReplicas ?? 1, 1) : backendReplicas
}

export function serverChildren(
  context: Context,
  template: Fields,
  { bridge, attach }: Stdio,
  policy: KubeObject,
): KubeObject[] {
  const { name, namespace, parent, settings } = context
  const names = serverNames(name)
  const labels = ownLabels(app, name, 'server')
  const selector = selectorLabels(app, name, 'server')
  const target = { selector, port: serverPort(parent), targetPort: 'http' }
  const observed = context.child('StatefulSet', names.server)
  return [
    ...(parent.spec.serviceAccount === undefined
      ? [serviceAccount({ name: names.server, namespace, labels }, settings.imagePullSecrets)]
      : []),
    ...(bridge ? [configMap({ name: names.serverConfig, namespace, labels }, bridge.files)] : []),
    ...(attach?.children(labels) ?? []),
    policy,
    ...(attach
      ? []
      : [
          service({ name: names.headless, namespace, labels }, { ...target, headless: true }),
          service(
            { name: names.server, namespace, labels },
            { ...target, sessionAffinity: parent.spec.sessionAffinity },
          ),
        ]),
    statefulSet(
      { name: names.server, namespace, labels },
      {
        selector,
        template,
        // Set even without a Service, because the field is immutable and a later spec may add a command.
        serviceName: names.headless,
        replicas: replicasToApply({ replicas: serverReplicas(context) }, observed),
      },
    ),
    ...availability(
      { name: names.server, namespace, labels },
      {
        kind: 'StatefulSet',
        selector,
        container: serverContainer,
        observed,
        replicas: serverReplicas(context),
      },
    ),
  ]
}
