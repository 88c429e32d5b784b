/**
 * Stand-ins for Metacontroller's own definitions.
 *
 * That of CompositeController has the fields that our manifests and docs/install.md use and no others, so that an API server with strict validation refuses a
 * misspelt one. The real definition comes with Metacontroller's release.
 */
const text = { type: 'string' } as const
const object = (properties: object, required: readonly string[] = []) => ({
  type: 'object',
  properties,
  ...(required.length > 0 && { required }),
})

const hook = object({
  version: { type: 'string', enum: ['v1', 'v2'], default: 'v1' },
  webhook: object({
    url: text,
    timeout: text,
    responseUnMarshallMode: { type: 'string', enum: ['loose', 'strict'] },
    caBundle: object({ inline: text }),
    authorization: object({ type: text, secretRef: object({ name: text, namespace: text, key: text }) }),
  }),
})

const spec = object(
  {
    parentResource: object({ apiVersion: text, resource: text, ignoreStatusChanges: { type: 'boolean' } }, [
      'apiVersion',
      'resource',
    ]),
    childResources: {
      type: 'array',
      items: object(
        {
          apiVersion: text,
          resource: text,
          updateStrategy: object({ method: { type: 'string', enum: ['OnDelete', 'InPlace', 'Recreate'] } }),
        },
        ['apiVersion', 'resource'],
      ),
    },
    generateSelector: { type: 'boolean' },
    resyncPeriodSeconds: { type: 'integer', format: 'int32', minimum: 1 },
    hooks: object({ sync: hook, customize: hook }),
  },
  ['parentResource'],
)

/** Metacontroller waits for these two as well; nothing of ours is of such a kind. */
export const otherMetacontrollerCrds = [
  crd('DecoratorController', 'Cluster', { type: 'object', 'x-kubernetes-preserve-unknown-fields': true }),
  crd('ControllerRevision', 'Namespaced', { type: 'object', 'x-kubernetes-preserve-unknown-fields': true }),
]

export const compositeControllerCrd = crd('CompositeController', 'Cluster', object({ spec }, ['spec']))

function crd(kind: string, scope: 'Cluster' | 'Namespaced', openAPIV3Schema: object) {
  const singular = kind.toLowerCase()
  const version = { name: 'v1alpha1', served: true, storage: true, subresources: { status: {} } }
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: {
      name: `${singular}s.metacontroller.k8s.io`,
      annotations: { 'api-approved.kubernetes.io': 'unapproved, a stand-in for tests' },
    },
    spec: {
      group: 'metacontroller.k8s.io',
      scope,
      names: { kind, listKind: `${kind}List`, plural: `${singular}s`, singular },
      versions: [{ ...version, schema: { openAPIV3Schema } }],
    },
  }
}
