/**
 * What `helm test` runs: a pod of the hooks image that asks the hooks server and the API server whether they answer.
 *
 * Its rights are there while it runs: dry runs of one kind, in the namespace of the release.
 */
import { apiGroup } from '../../../schemas/index.ts'
import {
  containerSecurity,
  filled,
  type GeneratedManifest,
  labels,
  names,
  placement,
  podLabels,
  podSecurity,
} from '../objects.ts'
import type { Values } from '../settings/values.ts'

const name = 'gatehouse-test'
const folder = '/etc/gatehouse-hooks/tls'

export function installationTest(values: Values): readonly GeneratedManifest[] {
  const metadata = {
    name,
    namespace: values.namespace,
    labels: labels(values, 'test'),
    annotations: hook(1),
  }
  const group = 'rbac.authorization.k8s.io'
  return [
    {
      apiVersion: 'v1',
      kind: 'ServiceAccount',
      metadata: {
        ...metadata,
        annotations: { ...hook(1), ...values.members('serviceAccountAnnotations') },
      },
      automountServiceAccountToken: false,
    },
    {
      apiVersion: `${group}/v1`,
      kind: 'Role',
      metadata,
      rules: [{ apiGroups: [apiGroup], resources: ['mcpauthzconfigs'], verbs: ['create'] }],
    },
    {
      apiVersion: `${group}/v1`,
      kind: 'RoleBinding',
      metadata,
      roleRef: { apiGroup: group, kind: 'Role', name },
      subjects: [{ kind: 'ServiceAccount', name, namespace: values.namespace }],
    },
    {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: {
        ...metadata,
        labels: podLabels(values, 'test'),
        annotations: { ...hook(2), ...values.members('podAnnotations') },
      },
      spec: pod(values),
    },
  ]
}

function pod(values: Values): object {
  return {
    serviceAccountName: name,
    automountServiceAccountToken: true,
    restartPolicy: 'Never',
    securityContext: podSecurity,
    ...filled({ imagePullSecrets: values.value('images.pullSecrets'), ...placement(values, 'hooks') }),
    containers: [
      {
        name: 'check',
        image: values.text('images.hooks'),
        imagePullPolicy: values.text('images.pullPolicy'),
        args: [
          'check',
          `--namespace=${values.namespace}`,
          `--service=${names.hooks}`,
          `--ca-file=${folder}/ca.crt`,
        ],
        resources: { requests: { cpu: '50m', memory: '128Mi' }, limits: { memory: '256Mi' } },
        securityContext: containerSecurity,
        volumeMounts: [{ name: 'tls', mountPath: folder, readOnly: true }],
      },
    ],
    volumes: [{ name: 'tls', secret: { secretName: names.tls, items: [{ key: 'ca.crt', path: 'ca.crt' }] } }],
  }
}

/** Helm makes these in the order of their weights when it tests, and takes them away afterwards. */
function hook(weight: number): Record<string, string> {
  return {
    'helm.sh/hook': 'test',
    'helm.sh/hook-weight': String(weight),
    'helm.sh/hook-delete-policy': 'before-hook-creation,hook-succeeded',
  }
}
