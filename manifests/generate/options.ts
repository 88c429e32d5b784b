/** Optional components: a ServiceMonitor, and a private Metacontroller with minimal permissions. */
import type { HookedKind } from './kinds.ts'
import {
  containerSecurity,
  instanceLabel,
  labels,
  type GeneratedManifest,
  names,
  podSecurity,
  selector,
  serviceAccount,
} from './objects.ts'
import { metacontrollerRbac } from './rbac.ts'
import type { Defaults } from './defaults.ts'

/** ServiceMonitor for the Prometheus operator. Scrapes over TLS and trusts the CA in the certificate's Secret. */
export function monitoring(defaults: Defaults): readonly GeneratedManifest[] {
  return [
    {
      apiVersion: 'monitoring.coreos.com/v1',
      kind: 'ServiceMonitor',
      metadata: { name: names.hooks, namespace: defaults.namespace, labels: labels(defaults, 'hooks') },
      spec: {
        selector: { matchLabels: selector('hooks') },
        namespaceSelector: { matchNames: [defaults.namespace] },
        endpoints: [
          {
            port: 'https',
            scheme: 'https',
            path: '/metrics',
            interval: '30s',
            tlsConfig: {
              ca: { secret: { name: names.tls, key: 'ca.crt' } },
              serverName: `${names.hooks}.${defaults.namespace}.svc`,
            },
          },
        ],
      },
    },
  ]
}

/**
 * A private Metacontroller that runs only our CompositeControllers. Metacontroller's CRDs come from its release. The
 * private Metacontroller has one pod, because two pods would conflict without leader election.
 */
export function metacontroller(
  kinds: readonly HookedKind[],
  defaults: Defaults,
): readonly GeneratedManifest[] {
  const metadata = {
    name: names.metacontroller,
    namespace: defaults.namespace,
    labels: labels(defaults, 'metacontroller'),
  }
  const [[key, value] = ['', '']] = Object.entries(instanceLabel)
  return [
    serviceAccount(defaults, 'metacontroller'),
    ...metacontrollerRbac(kinds, defaults),
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata,
      spec: {
        replicas: 1,
        revisionHistoryLimit: 3,
        strategy: { type: 'Recreate' },
        selector: { matchLabels: selector('metacontroller') },
        template: {
          metadata: { labels: labels(defaults, 'metacontroller') },
          spec: {
            serviceAccountName: names.metacontroller,
            automountServiceAccountToken: true,
            // The image sets its user by name, and a kubelet cannot verify that a named user is not root.
            securityContext: { ...podSecurity, runAsUser: 65532, runAsGroup: 65532 },
            containers: [
              {
                name: 'metacontroller',
                image: defaults.text('metacontroller.image'),
                imagePullPolicy: defaults.text('images.pullPolicy'),
                command: ['/usr/bin/metacontroller'],
                args: [
                  `--target-label-selector=${key}=${value}`,
                  '--zap-log-level=info',
                  // Request budget for all children and statuses. The defaults (5 and 10) are enough for only a handful
                  // of objects.
                  '--client-go-qps=50',
                  '--client-go-burst=100',
                ],
                ports: [
                  { name: 'metrics', containerPort: 9999, protocol: 'TCP' },
                  { name: 'health', containerPort: 8081, protocol: 'TCP' },
                ],
                livenessProbe: {
                  httpGet: { path: '/healthz', port: 'health' },
                  periodSeconds: 20,
                  timeoutSeconds: 3,
                },
                readinessProbe: {
                  httpGet: { path: '/readyz', port: 'health' },
                  periodSeconds: 10,
                  timeoutSeconds: 3,
                },
                resources: defaults.value('metacontroller.resources'),
                securityContext: containerSecurity,
              },
            ],
          },
        },
      },
    },
  ]
}
