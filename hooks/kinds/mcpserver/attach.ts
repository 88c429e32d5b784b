/**
 * Runs a stdio server whose image has its own entrypoint. The image starts unchanged with an open standard input, and
 * the proxy's sidecar attaches to its streams through the Kubernetes API.
 *
 * Only the sidecar has a token. The sidecar's Role allows reading and attaching to this one pod, and writing the
 * report. The proxy, which clients reach, has no token. One process serves all clients, so there is one pod and one
 * proxy. During a rollout, two proxies may overlap, so the report also serves as a lease
 * (runtime/proxy/stdio-server/attached/record.ts).
 */
import { hashOf, validateRuntime } from '../../../schemas/index.ts'
import { attachReportLabels, type ObjectLabels } from '../../children/labels.ts'
import { serverNames } from '../../children/names.ts'
import { configMap, role, roleBinding } from '../../children/objects.ts'
import type { ContainerSpec, VolumeSpec } from '../../children/pod.ts'
import { preStopDelay, shutdownGrace } from '../../children/serving/availability.ts'
import { runtimeContainerSecurity } from '../../children/security.ts'
import { toYaml } from '../../children/yaml.ts'
import { type Fields, isFields, type KubeObject, listOf } from '../../base/kube.ts'
import type { ConfigPart } from '../../sync/conditions.ts'
import type { SyncContext } from '../../sync/context.ts'
import { serverContainer } from './bridge.ts'
import { proxyFile } from '../common/proxy/children.ts'

type Context = SyncContext<'MCPServer'>

export interface Attach {
  /** The sidecar's address, for the proxy. */
  readonly targetUri: string
  /** Container that runs next to the proxy. */
  readonly sidecar: ContainerSpec
  readonly volumes: readonly VolumeSpec[]
  /** The sidecar restarts when this value changes. */
  readonly revision: string
  /** Modifies the server's pod template so that the sidecar can attach to its streams. */
  readonly apply: (template: Fields) => Fields
  readonly children: (labels: ObjectLabels) => readonly KubeObject[]
}

const attachContainer = 'attach'
const configVolume = 'gatehouse-attach'
const configDirectory = '/etc/gatehouse/attach'
const tokenVolume = 'gatehouse-attach-token'
/** The standard path that every Kubernetes client uses. */
const tokenDirectory = '/var/run/secrets/kubernetes.io/serviceaccount'
const tokenSeconds = 3_600
/**
 * Port of the bridge on the loopback interface, and port of its health endpoint. `otherPorts` are used instead when the
 * proxy's own port equals one of these ports.
 */
const ports = { bridge: 15_080, health: 15_081 } as const
const otherPorts = { bridge: 15_082, health: 15_083 } as const

export function attachOf(context: Context): ConfigPart<Attach> {
  const { name, namespace, parent, settings } = context
  const names = serverNames(name)
  const { proxyPort } = parent.spec
  const own = proxyPort === ports.bridge || proxyPort === ports.health ? otherPorts : ports
  const pod = `${names.server}-0`
  const file = {
    name,
    attach: { namespace, pod, container: serverContainer, report: names.report, healthPort: own.health },
    proxyMode: parent.spec.proxyMode,
    host: '127.0.0.1',
    port: own.bridge,
  }
  const [violation] = validateRuntime('proxy', file).violations
  if (violation)
    return { failure: { reason: 'ConfigInvalid', message: `${violation.path}: ${violation.message}` } }
  const files = { [proxyFile]: toYaml(file) }
  return {
    value: {
      targetUri: `http://127.0.0.1:${own.bridge}`,
      sidecar: sidecarOf(name, own, settings),
      volumes: volumesOf(names.serverConfig),
      revision: hashOf(files),
      apply: withStreams,
      children: (labels) => [
        role({ name: names.proxy, namespace, labels }, rulesOf(pod, names.report)),
        roleBinding({ name: names.proxy, namespace, labels }, names.proxy),
        configMap({ name: names.serverConfig, namespace, labels }, files),
        // The ConfigMap has no data: pods fill it, and Metacontroller never removes fields that it has not applied.
        configMap({ name: names.report, namespace, labels: { ...labels, ...attachReportLabels } }),
      ],
    },
  }
}

/** Opening a WebSocket requires `get` before Kubernetes 1.35 and `create` since then. */
function rulesOf(pod: string, report: string) {
  return [
    { apiGroups: [''], resources: ['pods'], resourceNames: [pod], verbs: ['get'] },
    { apiGroups: [''], resources: ['pods/attach'], resourceNames: [pod], verbs: ['get', 'create'] },
    { apiGroups: [''], resources: ['configmaps'], resourceNames: [report], verbs: ['get', 'patch'] },
  ]
}

function sidecarOf(
  name: string,
  { bridge, health }: { readonly bridge: number; readonly health: number },
  settings: Context['settings'],
): ContainerSpec {
  const probe = (path: string) => ({ httpGet: { path, port: 'attach-health' }, timeoutSeconds: 3 })
  return {
    name: attachContainer,
    image: settings.runtimeImage,
    imagePullPolicy: 'IfNotPresent',
    args: [
      'proxy',
      `--config=${configDirectory}/${proxyFile}`,
      '--host=127.0.0.1',
      `--port=${bridge}`,
      '--',
      name,
    ],
    env: [
      { name: 'GATEHOUSE_POD_NAME', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
      { name: 'GATEHOUSE_SHUTDOWN_GRACE', value: shutdownGrace },
    ],
    ports: [{ name: 'attach-health', containerPort: health, protocol: 'TCP' }],
    startupProbe: { ...probe('/health'), periodSeconds: 2, failureThreshold: 60 },
    livenessProbe: { ...probe('/health'), periodSeconds: 10, failureThreshold: 3 },
    // The pod stays ready while the server restarts, because requests wait for the server.
    readinessProbe: { ...probe('/readyz'), periodSeconds: 5, failureThreshold: 3 },
    resources: { requests: { cpu: '50m', memory: '128Mi' }, limits: { cpu: '500m', memory: '512Mi' } },
    lifecycle: preStopDelay,
    volumeMounts: [
      { name: configVolume, mountPath: configDirectory, readOnly: true },
      { name: tokenVolume, mountPath: tokenDirectory, readOnly: true },
    ],
    securityContext: runtimeContainerSecurity(settings),
  }
}

function volumesOf(config: string): readonly VolumeSpec[] {
  return [
    { name: configVolume, configMap: { name: config } },
    {
      name: tokenVolume,
      projected: {
        sources: [
          { serviceAccountToken: { path: 'token', expirationSeconds: tokenSeconds } },
          { configMap: { name: 'kube-root-ca.crt', items: [{ key: 'ca.crt', path: 'ca.crt' }] } },
        ],
      },
    },
  ]
}

/**
 * Overrides the user's template: `stdinOnce` would stop the server after the first attachment, and `tty` merges its
 * streams.
 */
function withStreams(template: Fields): Fields {
  const spec = isFields(template['spec']) ? template['spec'] : {}
  const containers = listOf(spec['containers']).filter(isFields)
  return {
    ...template,
    spec: {
      ...spec,
      containers: containers.map((container) => {
        if (container['name'] !== serverContainer) return container
        const { stdinOnce: _once, tty: _tty, ...rest } = container
        return { ...rest, stdin: true }
      }),
    },
  }
}
