/**
 * The source of the serving certificate: either a Job (self-signed) or cert-manager.
 *
 * Self-signed: the manifests contain an empty Secret, so the Job creates nothing and its permissions are limited to
 * names. cert-manager: cert-manager injects its CA into the webhook configuration. In `publish` mode, the same Job sets
 * the CA in the CompositeControllers.
 */
import type { HookedKind } from './kinds.ts'
import {
  containerSecurity,
  controllerName,
  labels,
  type GeneratedManifest,
  names,
  podSecurity,
  serviceAccount,
} from './objects.ts'
import { networkPolicy } from './server.ts'
import type { Defaults } from './defaults.ts'

const rbac = 'rbac.authorization.k8s.io/v1'

export function selfSigned(kinds: readonly HookedKind[], defaults: Defaults): readonly GeneratedManifest[] {
  const args = [
    'certificates',
    'issue',
    ...common(defaults),
    `--service=${names.hooks}`,
    `--cluster-domain=${defaults.text('platform.clusterDomain')}`,
    `--lifetime=${defaults.text('certificates.lifetime')}`,
    `--renew-before=${defaults.text('certificates.renewBefore')}`,
    '--webhook-configuration',
    names.hooks,
    ...controllerArgs(kinds),
  ]
  return [
    {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: names.tls, namespace: defaults.namespace, labels: labels(defaults, 'certificates') },
      type: 'Opaque',
    },
    ...rights(kinds, defaults, ['get', 'update'], [names.hooks]),
    ...jobs(defaults, args),
    networkPolicy(defaults, 'certificates', []),
  ]
}

/** The objects in the cert-manager variant, except for the annotation from `certManagerAnnotation`. */
export function certManager(kinds: readonly HookedKind[], defaults: Defaults): readonly GeneratedManifest[] {
  const object = (kind: string, name: string, spec: object): GeneratedManifest => ({
    apiVersion: 'cert-manager.io/v1',
    kind,
    metadata: { name, namespace: defaults.namespace, labels: labels(defaults, 'certificates') },
    spec,
  })
  const host = `${names.hooks}.${defaults.namespace}`
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
      duration: defaults.text('certificates.lifetime'),
      renewBefore: defaults.text('certificates.renewBefore'),
      privateKey,
      usages: ['digital signature', 'server auth'],
      dnsNames: [`${host}.svc`, `${host}.svc.${defaults.text('platform.clusterDomain')}`, host, names.hooks],
      issuerRef: { kind: 'Issuer', name: 'gatehouse-ca' },
    }),
    ...rights(kinds, defaults, ['get'], []),
    ...jobs(defaults, ['certificates', 'publish', ...common(defaults), ...controllerArgs(kinds)]),
    networkPolicy(defaults, 'certificates', []),
  ]
}

/** Makes cert-manager set the webhook configuration's `caBundle`. */
export function certManagerAnnotation(defaults: Defaults): Record<string, string> {
  return { 'cert-manager.io/inject-ca-from': `${defaults.namespace}/${names.hooks}` }
}

function common(defaults: Defaults): readonly string[] {
  return [`--namespace=${defaults.namespace}`, `--secret=${names.tls}`]
}

function controllerArgs(kinds: readonly HookedKind[]): readonly string[] {
  return ['--composite-controller', ...kinds.map((kind) => controllerName(kind.plural))]
}

/** Permissions of the Job for named objects: the Secret, the webhook configuration, the CompositeControllers. */
function rights(
  kinds: readonly HookedKind[],
  defaults: Defaults,
  secretVerbs: readonly string[],
  webhooks: readonly string[],
): readonly GeneratedManifest[] {
  const name = names.certificates
  const meta = { name, labels: labels(defaults, 'certificates') }
  const metadata = { ...meta, namespace: defaults.namespace }
  const subjects = [{ kind: 'ServiceAccount', name, namespace: defaults.namespace }]
  const roleRef = (kind: string) => ({ apiGroup: 'rbac.authorization.k8s.io', kind, name })
  const verbs = ['get', 'patch']
  return [
    serviceAccount(defaults, 'certificates'),
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
 * Returns a Job for installation and a CronJob for rotation. A Job is immutable, so its name contains a revision.
 * Kubernetes deletes a finished Job.
 */
function jobs(defaults: Defaults, args: readonly string[]): readonly GeneratedManifest[] {
  const spec = {
    backoffLimit: 10,
    activeDeadlineSeconds: 900,
    ttlSecondsAfterFinished: 600,
    template: { metadata: { labels: labels(defaults, 'certificates') }, spec: pod(defaults, args) },
  }
  const metadata = (name: string) => ({
    name,
    namespace: defaults.namespace,
    labels: labels(defaults, 'certificates'),
  })
  return [
    {
      apiVersion: 'batch/v1',
      kind: 'Job',
      metadata: metadata(`${names.certificates}-${defaults.revision}`),
      spec,
    },
    {
      apiVersion: 'batch/v1',
      kind: 'CronJob',
      metadata: metadata(names.certificates),
      spec: {
        schedule: defaults.text('certificates.schedule'),
        concurrencyPolicy: 'Forbid',
        startingDeadlineSeconds: 3600,
        successfulJobsHistoryLimit: 1,
        failedJobsHistoryLimit: 1,
        jobTemplate: { spec },
      },
    },
  ]
}

function pod(defaults: Defaults, args: readonly string[]): object {
  return {
    serviceAccountName: names.certificates,
    automountServiceAccountToken: true,
    restartPolicy: 'OnFailure',
    securityContext: podSecurity,
    containers: [
      {
        name: 'certificates',
        image: defaults.text('images.hooks'),
        imagePullPolicy: defaults.text('images.pullPolicy'),
        args,
        resources: { requests: { cpu: '50m', memory: '128Mi' }, limits: { memory: '256Mi' } },
        securityContext: containerSecurity,
      },
    ],
  }
}
