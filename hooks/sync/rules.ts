/**
 * Builds `customize` answers: one related rule per kind, always with the parent's namespace.
 *
 * Metacontroller caches the response per generation of the parent, so it may depend on name, namespace and spec only.
 * Secrets and ConfigMaps are asked for by name: a rule without names would bring every Secret of the namespace. Children
 * are asked for by their names as well, to notice what somebody else has put there; a kind that the cluster may lack only
 * where a child of it is made, for a rule about an unknown kind stops every sync.
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
  /** Kinds of this project, of which every object of the namespace is wanted. */
  readonly kinds?: readonly string[]
  /** The same of kinds of which only some objects are wanted, by kind: their names. */
  readonly named?: Readonly<Record<string, readonly string[]>>
  /** Names of Secrets. */
  readonly secrets?: Iterable<string | undefined>
  /** Names of ConfigMaps. */
  readonly configMaps?: Iterable<string | undefined>
  /** Names that the children will have, to notice objects of unmanaged objects under them. */
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

/** Plural resource name of one of our kinds. */
export function pluralOf(kind: string): string {
  return kinds.find((info) => info.kind === kind)?.plural ?? `${kind.toLowerCase()}s`
}

function byNames(rule: NamespaceRule, names: Iterable<string | undefined>): NamespaceRule | undefined {
  const given = [...names].filter((name) => name !== undefined)
  const wanted = [...new Set(given)].filter((name) => name !== '')
  return wanted.length > 0 ? { ...rule, names: wanted.sort(byText) } : undefined
}

/** The related kinds of this project, for the registry. */
export function ownRelatedKinds(
  names: readonly string[],
): readonly { apiVersion: string; resource: string }[] {
  return names.map((kind) => ({ apiVersion, resource: pluralOf(kind) }))
}

/** Related core kinds, for the registry. */
export const coreRelated = {
  ConfigMap: { apiVersion: 'v1', resource: 'configmaps' },
  Secret: { apiVersion: 'v1', resource: 'secrets' },
} as const
