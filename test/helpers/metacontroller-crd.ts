/**
 * A stand-in for Metacontroller's own definition of CompositeController, for tests without Metacontroller.
 *
 * It has the fields that our manifests use and no others, so that an API server with strict validation refuses a
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

export const compositeControllerCrd = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: {
    name: 'compositecontrollers.metacontroller.k8s.io',
    annotations: { 'api-approved.kubernetes.io': 'unapproved, a stand-in for tests' },
  },
  spec: {
    group: 'metacontroller.k8s.io',
    scope: 'Cluster',
    names: {
      kind: 'CompositeController',
      listKind: 'CompositeControllerList',
      plural: 'compositecontrollers',
      singular: 'compositecontroller',
    },
    versions: [
      {
        name: 'v1alpha1',
        served: true,
        storage: true,
        subresources: { status: {} },
        schema: { openAPIV3Schema: object({ spec }, ['spec']) },
      },
    ],
  },
} as const
