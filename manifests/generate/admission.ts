/**
 * The ValidatingWebhookConfiguration: the requests that the API server sends to the hooks server.
 *
 * Each of the two webhooks has its own conditions. Status writes never match, because the rules list no subresources.
 * The conditions skip requests that the webhook would always admit. As a result, users and controllers can edit
 * finalizers and labels, and delete objects and whole namespaces, while no hooks server is running.
 * Source: Kubernetes admissionregistration.k8s.io/v1; the certificate job sets `caBundle`.
 */
import { apiGroup } from '../../schemas/index.ts'
import { type ManifestKind } from './kinds.ts'
import { labels, type GeneratedManifest, names, servicePorts } from './objects.ts'
import type { Defaults } from './defaults.ts'

/**
 * The annotation that overrides the webhook. The condition also checks the annotation, in case no hooks server is
 * running.
 */
const allowDelete = "'gatehouse.dev/allow-delete'"

export function admission(kinds: readonly ManifestKind[], defaults: Defaults): readonly GeneratedManifest[] {
  const guarded = kinds.filter((kind) => kind.isDeletionReviewed)
  return [
    {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'ValidatingWebhookConfiguration',
      metadata: { name: names.hooks, labels: labels(defaults, 'admission') },
      webhooks: [
        {
          name: `validate.${apiGroup}`,
          ...shared(kinds, ['CREATE', 'UPDATE'], defaults),
          matchConditions: [
            {
              name: 'not-being-deleted',
              expression: "request.operation != 'UPDATE' || !has(object.metadata.deletionTimestamp)",
            },
            {
              name: 'spec-changed',
              expression:
                "request.operation != 'UPDATE' || !(has(object.spec) && has(oldObject.spec) && object.spec == oldObject.spec)",
            },
          ],
        },
        {
          name: `delete.${apiGroup}`,
          ...shared(guarded, ['DELETE'], defaults),
          matchConditions: [
            {
              name: 'not-overridden',
              expression: `!has(oldObject.metadata.annotations) || !(${allowDelete} in oldObject.metadata.annotations) || oldObject.metadata.annotations[${allowDelete}] != 'true'`,
            },
            {
              name: 'namespace-stays',
              expression:
                "request.userInfo.username != 'system:serviceaccount:kube-system:namespace-controller'",
            },
          ],
        },
      ].filter((webhook) => webhook.rules[0].resources.length > 0),
    },
  ]
}

function shared(kinds: readonly ManifestKind[], operations: readonly string[], defaults: Defaults) {
  return {
    admissionReviewVersions: ['v1'],
    sideEffects: 'None',
    failurePolicy: defaults.text('admission.failurePolicy'),
    matchPolicy: 'Equivalent',
    timeoutSeconds: 5,
    clientConfig: {
      service: {
        name: names.hooks,
        namespace: defaults.namespace,
        path: '/validate',
        port: servicePorts.admission.port,
      },
    },
    rules: [
      {
        apiGroups: [apiGroup],
        apiVersions: ['v1beta1'],
        resources: kinds.map((kind) => kind.plural),
        operations,
        scope: 'Namespaced',
      },
    ] as const,
  }
}
