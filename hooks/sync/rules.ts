/**
 * Builds `customize` responses: one related rule per kind, always with the parent's namespace.
 *
 * Metacontroller caches the response for each generation of the parent, so the response depends only on the name,
 * namespace and spec. Secrets and ConfigMaps are requested by name, because a rule without names would return every
 * Secret in the namespace. Children are requested by name as well, to detect unmanaged objects with those names. An
 * optional kind is requested only when a child of that kind exists, because a rule for an unknown kind stops every
 * sync.
 */
import { apiVersion, kinds, byText } from '../../schemas/index.ts'
import type { KubeObject } from '../base/kube.ts'
import { type ChildName, childKinds, type ChildNames } from './child-kinds.ts'
import type { CustomizeResponse, NamespaceRule, RelatedRule } from './protocol.ts'

export interface RelatedKind {
  readonly apiVersion: string
  readonly resource: string
}

export interface WantedObjects {
  /** Gatehouse kinds for which all objects in the namespace are requested. */
  readonly kinds?: readonly string[]
  /** Names of the objects to request, for kinds that need only some objects. */
  readonly named?: Readonly<Record<string, readonly string[]>>
  /** Names of Secrets. */
  readonly secrets?: Iterable<string | undefined>
  /** Names of ConfigMaps. */
  readonly configMaps?: Iterable<string | undefined>
  /** Names of the children, to detect unmanaged objects with the same name. */
  readonly own?: Partial<ChildNames>
}

export function relatedRules(parent: KubeObject, wanted: WantedObjects): CustomizeResponse {
  const namespace = parent.metadata.namespace ?? ''
  const { ConfigMap: ownMaps = [], ...own } = wanted.own ?? {}
  const rules: (RelatedRule | undefined)[] = [
    ...(wanted.kinds ?? []).map((kind) => ({ apiVersion, resource: pluralOf(kind), namespace })),
    ...Object.entries(wanted.named ?? {}).map(([kind, names]) =>
      byNames({ apiVersion, resource: pluralOf(kind), namespace }, names),
    ),
    byNames({ apiVersion: 'v1', resource: 'secrets', namespace }, wanted.secrets ?? []),
    byNames({ ...coreRelated.ConfigMap, namespace }, [...(wanted.configMaps ?? []), ...ownMaps]),
    ...Object.entries(own).map(([kind, names]) => {
      const { apiVersion: version, resource } = childKinds[kind as ChildName]
      return byNames({ apiVersion: version, resource, namespace }, names)
    }),
  ]
  return { relatedResources: rules.filter((rule) => rule !== undefined) }
}

/** Returns the plural resource name of a Gatehouse kind. */
export function pluralOf(kind: string): string {
  return kinds.find((info) => info.kind === kind)?.plural ?? `${kind.toLowerCase()}s`
}

function byNames(rule: NamespaceRule, names: Iterable<string | undefined>): NamespaceRule | undefined {
  const given = [...names].filter((name) => name !== undefined)
  const wanted = [...new Set(given)].filter((name) => name !== '')
  return wanted.length > 0 ? { ...rule, names: wanted.sort(byText) } : undefined
}

/** Lists related Gatehouse kinds for the registry. */
export function ownRelatedKinds(
  names: readonly string[],
): readonly { apiVersion: string; resource: string }[] {
  return names.map((kind) => ({ apiVersion, resource: pluralOf(kind) }))
}

/** Related core kinds for the registry. */
export const coreRelated = {
  ConfigMap: { apiVersion: 'v1', resource: 'configmaps' },
  Secret: { apiVersion: 'v1', resource: 'secrets' },
} as const
