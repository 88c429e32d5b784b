/**
 * Definitions (CRDs) of Metacontroller's kinds, written for Gatehouse and installed in clusters that do not have these
 * definitions yet.
 *
 * The definitions describe the fields that our CompositeControllers use. All other fields are preserved, because other
 * controllers and later Metacontroller versions may use them. Metacontroller's own definitions are not replaced if they
 * exist.
 * Source: Metacontroller's API reference, CompositeController.
 */
const open = { 'x-kubernetes-preserve-unknown-fields': true } as const
const text = { type: 'string' } as const
const object = (properties: object, required: readonly string[] = []) => ({
  type: 'object',
  ...open,
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

const methods = ['OnDelete', 'Recreate', 'InPlace', 'RollingRecreate', 'RollingInPlace']

const compositeSpec = object(
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
          updateStrategy: object({ method: { type: 'string', enum: methods } }),
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

/** Kinds in output order. Metacontroller waits for all three kinds; Gatehouse uses only the first. */
export const metacontrollerDefinitions = [
  definition('CompositeController', 'Cluster', {
    type: 'object',
    properties: { spec: compositeSpec, status: { type: 'object', ...open } },
    required: ['spec'],
  }),
  definition('DecoratorController', 'Cluster', { type: 'object', ...open }),
  definition('ControllerRevision', 'Namespaced', { type: 'object', ...open }),
] as const

function definition(kind: string, scope: 'Cluster' | 'Namespaced', openAPIV3Schema: object) {
  const singular = kind.toLowerCase()
  const version = { name: 'v1alpha1', served: true, storage: true, subresources: { status: {} } }
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: {
      name: `${singular}s.metacontroller.k8s.io`,
      annotations: { 'api-approved.kubernetes.io': "unapproved, the kinds of Metacontroller's own project" },
    },
    spec: {
      group: 'metacontroller.k8s.io',
      scope,
      names: { kind, listKind: `${kind}List`, plural: `${singular}s`, singular },
      versions: [{ ...version, schema: { openAPIV3Schema } }],
    },
  }
}
