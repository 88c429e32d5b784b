/**
 * One CompositeController per kind: the objects that its hooks create, and how Metacontroller calls them.
 *
 * With `?rev=<version>`, each new version changes the spec, after which Metacontroller calls every hook again. The
 * manifests omit `caBundle`, because the certificate job sets it. Applying the manifests again preserves the value.
 * Source: Metacontroller CompositeController API.
 */
import { apiVersion } from '../../schemas/index.ts'
import { type Child, distinct, type HookedKind } from './kinds.ts'
import {
  controllerName,
  instanceLabel,
  labels,
  type GeneratedManifest,
  names,
  servicePorts,
} from './objects.ts'
import type { Defaults } from './defaults.ts'

/** Hooks respond within milliseconds, so ten seconds is enough; the timeout limits the wait for a pod that hangs. */
const timeout = '10s'

export function controllers(kinds: readonly HookedKind[], defaults: Defaults): readonly GeneratedManifest[] {
  return kinds.map((kind) => ({
    apiVersion: 'metacontroller.k8s.io/v1alpha1',
    kind: 'CompositeController',
    metadata: {
      name: controllerName(kind.plural),
      labels: { ...labels(defaults, 'controllers'), ...instanceLabel },
    },
    spec: {
      parentResource: { apiVersion, resource: kind.plural, ignoreStatusChanges: true },
      ...(kind.children.length > 0 && {
        childResources: distinct(kind.children)
          .filter(({ integration }) => integration === undefined)
          .map(childResource),
      }),
      generateSelector: true,
      resyncPeriodSeconds: defaults.value('controllers.resyncPeriodSeconds'),
      hooks: {
        sync: hook(kind.plural, 'sync', defaults),
        customize: hook(kind.plural, 'customize', defaults),
      },
    },
  }))
}

/** Sets an update method. Otherwise, an existing child would never change. */
export function childResource({ apiVersion, resource, updateStrategy }: Child) {
  return { apiVersion, resource, updateStrategy: { method: updateStrategy } }
}

function hook(plural: string, name: string, defaults: Defaults): object {
  const host = `${names.hooks}.${defaults.namespace}.svc`
  const url = `https://${host}:${servicePorts.hooks.port}/hooks/${plural}/${name}?rev=${defaults.version}`
  return { version: 'v2', webhook: { url, timeout, responseUnMarshallMode: 'strict' } }
}
