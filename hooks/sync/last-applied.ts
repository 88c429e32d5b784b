/**
 * Returns children as they were last applied, for a sync that cannot compute new children.
 *
 * Metacontroller deletes children that a response omits, so a broken reference must not result in an empty list.
 * Returns the last-applied state instead of the observed object, because the defaulted fields of the observed object
 * would become managed. Sources, in order of preference: the last-applied annotation (dynamic apply), the fields that
 * Metacontroller owns (server-side apply), or just the name, which changes nothing in a three-way merge.
 */
import { parseEmbeddedJson } from '../base/json-bounds.ts'
import { fieldsOf, isFields, isTerminating, type KubeObject } from '../base/kube.ts'
import { ownedFields } from './managed-fields.ts'
import { groupKey, type ObjectGroups, type SyncRequest } from './protocol.ts'
import { lastAppliedAnnotation, byText } from '../../schemas/index.ts'

/** Returns the object that Metacontroller last applied for this child; undefined when the child does not record it. */
export function lastApplied(child: KubeObject): KubeObject | undefined {
  return appliedByAnnotation(child) ?? ownedFields(child)
}

/**
 * Like `lastApplied`, but reads only the annotation that dynamic apply sets, which contains the applied object
 * verbatim.
 */
export function appliedByAnnotation(child: KubeObject): KubeObject | undefined {
  const text = child.metadata.annotations?.[lastAppliedAnnotation]
  const applied = text === undefined ? undefined : parse(text)
  return applied && sameIdentity(applied, child) ? applied : undefined
}

/** Returns every existing child that is not being deleted, as last applied. */
export function lastAppliedChildren(request: SyncRequest): KubeObject[] {
  const order = (child: KubeObject) => `${groupKey(child)} ${child.metadata.name}`
  return [...allOf(request.children)]
    .filter((child) => !isTerminating(child))
    .sort((a, b) => byText(order(a), order(b)))
    .map(lastAppliedOrName)
}

/** Returns one existing child as last applied. */
export function lastAppliedOrName(child: KubeObject): KubeObject {
  return lastApplied(child) ?? identity(child)
}

function* allOf(groups: ObjectGroups): Iterable<KubeObject> {
  for (const objects of groups.values()) yield* objects
}

function identity({ apiVersion, kind, metadata }: KubeObject): KubeObject {
  const { name, namespace } = metadata
  return { apiVersion, kind, metadata: { name, ...(namespace !== undefined && { namespace }) } }
}

function sameIdentity(applied: KubeObject, child: KubeObject): boolean {
  return (
    applied.apiVersion === child.apiVersion &&
    applied.kind === child.kind &&
    applied.metadata.name === child.metadata.name
  )
}

function parse(text: string): KubeObject | undefined {
  const value = parseEmbeddedJson(text)
  const metadata = fieldsOf(value)['metadata']
  if (!isFields(value) || !isFields(metadata)) return undefined
  return { ...value, metadata: withoutSystemFields(metadata) } as unknown as KubeObject
}

const systemFields = [
  'uid',
  'resourceVersion',
  'generation',
  'creationTimestamp',
  'managedFields',
  'ownerReferences',
] as const

function withoutSystemFields(metadata: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const own = { ...metadata }
  for (const field of systemFields) delete own[field]
  return own
}
