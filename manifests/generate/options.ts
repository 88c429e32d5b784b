/**
 * What an installation may add: a ServiceMonitor, and a Metacontroller of its own with the least rights.
 */
import type { HookedKind } from './kinds.ts'
import {
  containerSecurity,
  filled,
  instanceLabel,
  labels,
  type GeneratedManifest,
  names,
  placement,
  podMetadata,
  podSecurity,
  serviceAccount,
} from './objects.ts'
import { metacontrollerRbac } from './rbac.ts'
import { selector } from './selectors.ts'
import type { Values } from './settings/values.ts'

/** For the Prometheus operator; scrapes over TLS, trusting the authority in the certificate's Secret. */
export function monitoring(values: Values): readonly GeneratedManifest[] {
  return [
    {
      apiVersion: 'monitoring.coreos.com/v1',
      kind: 'ServiceMonitor',
      metadata: { name: names.hooks, namespace: values.namespace, labels: labels(values, 'hooks') },
      spec: {
        selector: { matchLabels: selector('hooks') },
        namespaceSelector: { matchNames: [values.namespace] },
        endpoints: [
          {
            port: 'https',
            scheme: 'https',
            path: '/metrics',
            interval: '30s',
            tlsConfig: {
              ca: { secret: { name: names.tls, key: 'ca.crt' } },
              serverName: `${names.hooks}.${values.namespace}.svc`,
            },
          },
        ],
      },
    },
  ]
}

/**
 * A private Metacontroller that runs our CompositeControllers only. Its definitions (CRDs) are Metacontroller's own and
 * are installed from its release. One pod: two would work against each other without leader election.
 */
export function metacontroller(kinds: readonly HookedKind[], values: Values): readonly GeneratedManifest[] {
  const metadata = {
    name: names.metacontroller,
    namespace: values.namespace,
    labels: labels(values, 'metacontroller'),
  }
  const [[key, value] = ['', '']] = Object.entries(instanceLabel)
  return [
    serviceAccount(values, 'metacontroller'),
    ...metacontrollerRbac(kinds, values),
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
          metadata: podMetadata(values, 'metacontroller'),
          spec: {
            serviceAccountName: names.metacontroller,
            automountServiceAccountToken: true,
            // The image gives its user by name, of which a kubelet cannot tell that it is not root.
            // OpenShift gives a number itself, and refuses any other.
            securityContext: {
              ...podSecurity,
              ...values.unless('platform.openshift', { runAsUser: 65532, runAsGroup: 65532 }),
            },
            ...filled({
              imagePullSecrets: values.value('images.pullSecrets'),
              ...placement(values, 'metacontroller'),
              priorityClassName: values.text('metacontroller.priorityClassName'),
            }),
            containers: [
              {
                name: 'metacontroller',
                image: values.text('metacontroller.image'),
                imagePullPolicy: values.text('images.pullPolicy'),
                command: ['/usr/bin/metacontroller'],
                args: [
                  `--target-label-selector=${key}=${value}`,
                  '--zap-log-level=info',
                  // One budget for all children and statuses; the defaults (5 and 10) are for a handful of objects.
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
                resources: values.value('metacontroller.resources'),
                securityContext: containerSecurity,
              },
            ],
          },
        },
      },
    },
  ]
}
