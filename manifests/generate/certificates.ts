/**
 * Where the serving certificate comes from: a job of our own (self-signed), or cert-manager.
 *
 * Self-signed: the Secret comes empty with the manifests, so the job's rights are limited to names: it creates nothing.
 * cert-manager: it injects its authority into the webhook configuration by itself; the CompositeControllers get theirs
 * from the same job, in its `publish` form.
 */
import type { HookedKind } from './kinds.ts'
import {
  containerSecurity,
  controllerName,
  filled,
  labels,
  type GeneratedManifest,
  names,
  placement,
  podMetadata,
  podSecurity,
  serviceAccount,
} from './objects.ts'
import { networkPolicy } from './server.ts'
import type { Values } from './settings/values.ts'

const rbac = 'rbac.authorization.k8s.io/v1'

export function selfSigned(kinds: readonly HookedKind[], values: Values): readonly GeneratedManifest[] {
  const args = [
    'certificates',
    'issue',
    ...common(values),
    `--service=${names.hooks}`,
    `--cluster-domain=${values.text('platform.clusterDomain')}`,
    `--lifetime=${values.text('certificates.lifetime')}`,
    `--renew-before=${values.text('certificates.renewBefore')}`,
    '--webhook-configuration',
    names.hooks,
    ...controllerArgs(kinds),
  ]
  return [
    {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: names.tls, namespace: values.namespace, labels: labels(values, 'certificates') },
      type: 'Opaque',
    },
    ...rights(kinds, values, ['get', 'update'], [names.hooks]),
    ...jobs(values, args),
    networkPolicy(values, 'certificates', []),
  ]
}

/** Everything of the cert-manager variant but the annotation, which `certManagerAnnotation` gives. */
export function certManager(kinds: readonly HookedKind[], values: Values): readonly GeneratedManifest[] {
  const object = (kind: string, name: string, spec: object): GeneratedManifest => ({
    apiVersion: 'cert-manager.io/v1',
    kind,
    metadata: { name, namespace: values.namespace, labels: labels(values, 'certificates') },
    spec,
  })
  const host = `${names.hooks}.${values.namespace}`
  const privateKey = { algorithm: 'ECDSA', size: 256, rotationPolicy: 'Always' }
  return [
    object('Issuer', 'gatehouse-bootstrap', { selfSigned: {} }),
    object('Certificate', 'gatehouse-ca', {
      isCA: true,
      commonName: 'gatehouse-ca',
      secretName: 'gatehouse-ca',
      duration: '87600h',
      privateKey: { algorithm: 'ECDSA', size: 256 },
      issuerRef: { kind: 'Issuer', name: 'gatehouse-bootstrap' },
    }),
    object('Issuer', 'gatehouse-ca', { ca: { secretName: 'gatehouse-ca' } }),
    object('Certificate', names.hooks, {
      secretName: names.tls,
      duration: values.text('certificates.lifetime'),
      renewBefore: values.text('certificates.renewBefore'),
      privateKey,
      usages: ['digital signature', 'server auth'],
      dnsNames: [`${host}.svc`, `${host}.svc.${values.text('platform.clusterDomain')}`, host, names.hooks],
      issuerRef: { kind: 'Issuer', name: 'gatehouse-ca' },
    }),
    ...rights(kinds, values, ['get'], []),
    ...jobs(values, ['certificates', 'publish', ...common(values), ...controllerArgs(kinds)]),
    networkPolicy(values, 'certificates', []),
  ]
}

/** Has cert-manager fill in the webhook configuration's `caBundle`. */
export function certManagerAnnotation(values: Values): Record<string, string> {
  return { 'cert-manager.io/inject-ca-from': `${values.namespace}/${names.hooks}` }
}

function common(values: Values): readonly string[] {
  return [`--namespace=${values.namespace}`, `--secret=${names.tls}`]
}

function controllerArgs(kinds: readonly HookedKind[]): readonly string[] {
  return ['--composite-controller', ...kinds.map((kind) => controllerName(kind.plural))]
}

/** Named objects only: the Secret, the webhook configuration, the CompositeControllers. */
function rights(
  kinds: readonly HookedKind[],
  values: Values,
  secretVerbs: readonly string[],
  webhooks: readonly string[],
): readonly GeneratedManifest[] {
  const name = names.certificates
  const meta = { name, labels: labels(values, 'certificates') }
  const metadata = { ...meta, namespace: values.namespace }
  const subjects = [{ kind: 'ServiceAccount', name, namespace: values.namespace }]
  const roleRef = (kind: string) => ({ apiGroup: 'rbac.authorization.k8s.io', kind, name })
  const verbs = ['get', 'patch']
  return [
    serviceAccount(values, 'certificates'),
    {
      apiVersion: rbac,
      kind: 'Role',
      metadata,
      rules: [{ apiGroups: [''], resources: ['secrets'], resourceNames: [names.tls], verbs: secretVerbs }],
    },
    { apiVersion: rbac, kind: 'RoleBinding', metadata, roleRef: roleRef('Role'), subjects },
    {
      apiVersion: rbac,
      kind: 'ClusterRole',
      metadata: meta,
      rules: [
        ...(webhooks.length > 0
          ? [
              {
                apiGroups: ['admissionregistration.k8s.io'],
                resources: ['validatingwebhookconfigurations'],
                resourceNames: webhooks,
                verbs,
              },
            ]
          : []),
        {
          apiGroups: ['metacontroller.k8s.io'],
          resources: ['compositecontrollers'],
          resourceNames: kinds.map((kind) => controllerName(kind.plural)),
          verbs,
        },
      ],
    },
    {
      apiVersion: rbac,
      kind: 'ClusterRoleBinding',
      metadata: meta,
      roleRef: roleRef('ClusterRole'),
      subjects,
    },
  ]
}

/**
 * A Job for now and a CronJob for later. The Job's name carries a revision, since a Job cannot be changed: a new
 * version is a new Job, and a finished one goes by itself.
 */
function jobs(values: Values, args: readonly string[]): readonly GeneratedManifest[] {
  const spec = {
    backoffLimit: 10,
    activeDeadlineSeconds: 900,
    ttlSecondsAfterFinished: 600,
    template: { metadata: podMetadata(values, 'certificates'), spec: pod(values, args) },
  }
  const metadata = (name: string) => ({
    name,
    namespace: values.namespace,
    labels: labels(values, 'certificates'),
  })
  return [
    {
      apiVersion: 'batch/v1',
      kind: 'Job',
      metadata: metadata(`${names.certificates}-${values.revision}`),
      spec,
    },
    {
      apiVersion: 'batch/v1',
      kind: 'CronJob',
      metadata: metadata(names.certificates),
      spec: {
        schedule: values.text('certificates.schedule'),
        concurrencyPolicy: 'Forbid',
        startingDeadlineSeconds: 3600,
        successfulJobsHistoryLimit: 1,
        failedJobsHistoryLimit: 1,
        jobTemplate: { spec },
      },
    },
  ]
}

function pod(values: Values, args: readonly string[]): object {
  return {
    serviceAccountName: names.certificates,
    automountServiceAccountToken: true,
    restartPolicy: 'OnFailure',
    securityContext: podSecurity,
    ...filled({
      imagePullSecrets: values.value('images.pullSecrets'),
      ...placement(values, 'hooks'),
    }),
    containers: [
      {
        name: 'certificates',
        image: values.text('images.hooks'),
        imagePullPolicy: values.text('images.pullPolicy'),
        args,
        resources: { requests: { cpu: '50m', memory: '128Mi' }, limits: { memory: '256Mi' } },
        securityContext: containerSecurity,
      },
    ],
  }
}
