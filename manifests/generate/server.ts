/**
 * The hooks server: its namespace, ServiceAccount, Deployment, Service, disruption budget and network policy.
 *
 * The two pods run on different nodes, so admission survives the loss of a node. The pods mount explicit keys of the
 * certificate's Secret. A pod therefore waits for the certificate Job instead of starting without a certificate.
 * Rotation does not require a restart.
 */
import { hooksRbac } from './rbac.ts'
import {
  containerSecurity,
  labels,
  type GeneratedManifest,
  names,
  podSecurity,
  selector,
  serviceAccount,
  servicePorts,
} from './objects.ts'
import type { Defaults } from './defaults.ts'

const tlsFolder = '/etc/gatehouse-hooks/tls'

/** Only the plain manifests create a namespace. A chart is installed into an existing namespace. */
export function namespace(defaults: Defaults): readonly GeneratedManifest[] {
  return [
    {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: {
        name: defaults.namespace,
        labels: {
          'app.kubernetes.io/part-of': 'gatehouse',
          'pod-security.kubernetes.io/enforce': 'restricted',
          'pod-security.kubernetes.io/warn': 'restricted',
        },
      },
    },
  ]
}

export function hooksServer(defaults: Defaults): readonly GeneratedManifest[] {
  const metadata = { name: names.hooks, namespace: defaults.namespace, labels: labels(defaults, 'hooks') }
  return [
    serviceAccount(defaults, 'hooks'),
    ...hooksRbac(defaults),
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata,
      spec: {
        replicas: defaults.value('hooks.replicas'),
        revisionHistoryLimit: 3,
        selector: { matchLabels: selector('hooks') },
        // A new pod must be ready before an old pod ends, which avoids a gap in admission.
        strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } },
        template: { metadata: { labels: labels(defaults, 'hooks') }, spec: pod(defaults) },
      },
    },
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata,
      spec: {
        type: 'ClusterIP',
        selector: selector('hooks'),
        ports: Object.values(servicePorts).map(({ name, port }) => ({
          name,
          port,
          targetPort: name,
          protocol: 'TCP',
          appProtocol: 'https',
        })),
      },
    },
    {
      apiVersion: 'policy/v1',
      kind: 'PodDisruptionBudget',
      metadata,
      spec: { maxUnavailable: 1, selector: { matchLabels: selector('hooks') } },
    },
    networkPolicy(defaults, 'hooks', [
      { ports: [{ protocol: 'TCP', port: servicePorts.admission.containerPort }] },
      {
        from: metacontrollers(defaults),
        ports: [{ protocol: 'TCP', port: servicePorts.hooks.containerPort }],
      },
    ]),
  ]
}

/** Peers that may call /hooks: a private Metacontroller, and any pod in the namespace of a shared Metacontroller. */
function metacontrollers(defaults: Defaults): readonly object[] {
  const namespace = defaults.text('metacontroller.namespace')
  return [
    { podSelector: { matchLabels: selector('metacontroller') } },
    { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': namespace } } },
  ]
}

/** Configures the hooks for a Metacontroller that manages HTTPRoutes. */
export const gatewayApiVariable = { name: 'GATEHOUSE_GATEWAY_API', value: 'true' } as const

function pod(defaults: Defaults): object {
  const probe = (path: string, rest: object) => ({
    httpGet: { path, port: 'https', scheme: 'HTTPS' },
    timeoutSeconds: 3,
    ...rest,
  })
  return {
    serviceAccountName: names.hooks,
    // The server uses the token only to write Events.
    automountServiceAccountToken: true,
    securityContext: podSecurity,
    terminationGracePeriodSeconds: 30,
    topologySpreadConstraints: defaults.value('hooks.topologySpreadConstraints'),
    containers: [
      {
        name: 'hooks',
        image: defaults.text('images.hooks'),
        imagePullPolicy: defaults.text('images.pullPolicy'),
        args: [
          '--host=0.0.0.0',
          `--port=${servicePorts.admission.containerPort}`,
          `--hooks-port=${servicePorts.hooks.containerPort}`,
          `--tls-cert-file=${tlsFolder}/tls.crt`,
          `--tls-key-file=${tlsFolder}/tls.key`,
        ],
        env: [
          { name: 'GATEHOUSE_VERSION', value: defaults.version },
          { name: 'GATEHOUSE_RUNTIME_IMAGE', value: defaults.text('images.runtime') },
          { name: 'GATEHOUSE_STDIO_ATTACH', value: defaults.text('stdio.attach') },
          { name: 'GATEHOUSE_OPENSHIFT', value: defaults.text('platform.openshift') },
          { name: 'GATEHOUSE_CLUSTER_DOMAIN', value: defaults.text('platform.clusterDomain') },
          { name: 'GATEHOUSE_ENABLE_OBO', value: defaults.text('integrations.onBehalfOf') },
        ],
        ports: Object.values(servicePorts).map(({ name, containerPort }) => ({
          name,
          containerPort,
          protocol: 'TCP',
        })),
        startupProbe: probe('/healthz', { periodSeconds: 2, failureThreshold: 30 }),
        livenessProbe: probe('/healthz', { periodSeconds: 20, failureThreshold: 3 }),
        readinessProbe: probe('/readyz', { periodSeconds: 5, failureThreshold: 2 }),
        // Delays the shutdown, because calls keep arriving until every node has removed this pod from its endpoints.
        lifecycle: { preStop: { sleep: { seconds: 5 } } },
        resources: defaults.value('hooks.resources'),
        securityContext: containerSecurity,
        volumeMounts: [{ name: 'tls', mountPath: tlsFolder, readOnly: true }],
      },
    ],
    volumes: [
      {
        name: 'tls',
        secret: { secretName: names.tls, items: ['tls.crt', 'tls.key'].map((key) => ({ key, path: key })) },
      },
    ],
  }
}

/**
 * Ports of DNS pods and API servers in common distributions. Policies apply after the Service's address translation.
 */
const dnsPorts = [53, 5353]
const apiPorts = [443, 6443, 8443, 16443]

/**
 * Allows the given ingress, and egress only to DNS and the API server. An empty list allows no ingress. The API server
 * is not a pod, so policies can only match its ports. Kubelets can always reach the pods on their node.
 */
export function networkPolicy(
  defaults: Defaults,
  component: 'hooks' | 'certificates',
  ingress: readonly object[],
): GeneratedManifest {
  const dns = dnsPorts.flatMap((port) => ['UDP', 'TCP'].map((protocol) => ({ protocol, port })))
  const api = apiPorts.map((port) => ({ protocol: 'TCP', port }))
  return {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: {
      name: `gatehouse-${component}`,
      namespace: defaults.namespace,
      labels: labels(defaults, component),
    },
    spec: {
      podSelector: { matchLabels: selector(component) },
      policyTypes: ['Ingress', 'Egress'],
      // Omits an empty list, as the API server does. With this policy type, a missing list blocks all ingress.
      ...(ingress.length > 0 && { ingress }),
      egress: [{ ports: dns }, { ports: api }],
    },
  }
}
