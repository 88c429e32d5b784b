/**
 * Keeps what runs: gives back the children as they were last applied, for a sync that cannot compute new ones.
 *
 * A child that a response leaves out is deleted, so a broken reference must not lead to an empty list. What is given
 * back is what was applied, never the observed object: its defaulted fields would become ours. Sources, in order: the
 * last-applied annotation (dynamic apply); the fields that Metacontroller owns (server-side apply); at the very least
 * the name, which changes nothing under a three-way merge.
 */
import { jsonIn } from '../base/json-bounds.ts'
import { fieldsOf, isFields, isTerminating, type KubeObject } from '../base/kube.ts'
import { ownedFields } from './managed-fields.ts'
import { groupKey, type ObjectGroups, type SyncRequest } from './protocol.ts'
import { lastAppliedAnnotation, byText } from '../../schemas/index.ts'

/** What Metacontroller applied last for this child; undefined when the object does not tell. */
export function lastApplied(child: KubeObject): KubeObject | undefined {
  return appliedByAnnotation(child) ?? ownedFields(child)
}

/** The same from the annotation of dynamic apply alone, which repeats what was applied literally. */
export function appliedByAnnotation(child: KubeObject): KubeObject | undefined {
  const text = child.metadata.annotations?.[lastAppliedAnnotation]
  const applied = text === undefined ? undefined : parse(text)
  return applied && sameIdentity(applied, child) ? applied : undefined
}

/** Every present child that is not being deleted, as last applied. */
export function lastAppliedChildren(request: SyncRequest): KubeObject[] {
  const order = (child: KubeObject) => `${groupKey(child)} ${child.metadata.name}`
  return [...allOf(request.children)]
    .filter((child) => !isTerminating(child))
    .sort((a, b) => byText(order(a), order(b)))
    .map(echo)
}

/** One present child, as last applied. */
export function echo(child: KubeObject): KubeObject {
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
  const value = jsonIn(text)
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
