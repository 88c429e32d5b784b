/**
 * Compares a backend's offered items with the approved items. This module is pure. Comparing digests is fast even for
 * many items.
 */
import { JsonError, JsonObject } from '../../../mcp/index.ts'
import type { Listing } from '../listing.ts'
import type { CatalogItem } from '../../model/catalog/entries.ts'
import { differingParts } from './digest.ts'
import { isNarrower } from './narrower.ts'
import { type PinnedPart, type PinDigests, type PinKind, parts } from '../../model/catalog/pinning.ts'
import { type Approved, type ApprovedForm, type CompiledLock, pinKey, type PinState } from './types.ts'

/** An item in a listing, in the form that pinning compares. */
export interface OfferedItem {
  readonly kind: PinKind
  readonly name: string
  readonly json: Buffer
  /** Undefined if the item could not be hashed. Such an item matches no approved form. */
  readonly pin: PinDigests | undefined
}

export interface EvaluatedItem extends OfferedItem {
  readonly state: Exclude<PinState, 'removed'>
  readonly parts: readonly PinnedPart[]
  /** The most similar approved form. Undefined for a new item. */
  readonly form: ApprovedForm | undefined
  readonly renamedFrom: string | undefined
}

export interface Evaluation {
  readonly items: ReadonlyMap<string, EvaluatedItem>
  /** Approved items that the backend does not offer. */
  readonly removed: readonly Approved[]
}

/** Returns all pinned items of a listing. Resources are data and are not pinned. */
export function pinnableItems({
  tools,
  prompts,
  templates,
  server,
  instructionsPin,
  skills = [],
}: Listing): OfferedItem[] {
  const of = (kind: PinKind, items: readonly CatalogItem[]): OfferedItem[] =>
    items.map(({ key, json, pin }) => ({ kind, name: key, json, pin }))
  const { instructions } = server
  return [
    ...of('tool', tools),
    ...of('prompt', prompts),
    ...of('resourceTemplate', templates),
    ...of('skill', skills),
    ...(instructions === undefined
      ? []
      : [
          {
            kind: 'instructions' as const,
            name: '',
            json: Buffer.from(JSON.stringify(instructions)),
            pin: instructionsPin,
          },
        ]),
  ]
}

export function evaluate(offered: readonly OfferedItem[], lock: CompiledLock): Evaluation {
  const names = new Set(offered.map(({ kind, name }) => pinKey(kind, name)))
  const removed = [...lock.items].filter(([key]) => !names.has(key)).map(([, approved]) => approved)
  const goneByDigest = new Map(
    removed.flatMap(({ kind, name, forms }) =>
      forms.map(({ digests }) => [`${kind} ${digests.digest}`, name] as const),
    ),
  )
  const items = new Map<string, EvaluatedItem>()
  for (const one of offered) {
    const key = pinKey(one.kind, one.name)
    const renamedFrom = goneByDigest.get(`${one.kind} ${one.pin?.digest}`)
    items.set(key, { ...one, ...evaluateOne(one, lock.items.get(key), lock.accept, renamedFrom) })
  }
  return { items, removed }
}

type Verdict = Pick<EvaluatedItem, 'state' | 'parts' | 'form' | 'renamedFrom'>

function evaluateOne(
  offered: OfferedItem,
  approved: Approved | undefined,
  accept: ReadonlySet<string>,
  renamedFrom: string | undefined,
): Verdict {
  const { pin } = offered
  if (!approved) {
    const own = parts.filter((part) => pin?.parts[part] !== undefined)
    return { state: 'new', parts: own, form: undefined, renamedFrom }
  }
  const [first] = approved.forms
  if (!pin) return { state: 'changed', parts, form: first, renamedFrom: undefined }
  let nearest: { readonly form: ApprovedForm; readonly parts: readonly PinnedPart[] } | undefined
  for (const form of approved.forms) {
    if (form.digests.digest === pin.digest)
      return { state: 'pinned', parts: [], form, renamedFrom: undefined }
    const differing = differingParts(form.digests, pin)
    if (!nearest || differing.length < nearest.parts.length) nearest = { form, parts: differing }
  }
  const { form, parts: differing } = nearest ?? { form: first, parts }
  const state = isAccepted(offered, form, differing, accept) ? 'pinned' : 'changed'
  return { state, parts: state === 'pinned' ? [] : differing, form, renamedFrom: undefined }
}

/**
 * True for a difference that the lock accepts. Locks can accept narrower arguments and different icons, but never
 * differences in texts, hints or results.
 */
function isAccepted(
  { kind, json }: OfferedItem,
  { item }: ApprovedForm,
  differing: readonly PinnedPart[],
  accept: ReadonlySet<string>,
): boolean {
  return differing.every((part) => {
    if (part === 'icons') return accept.has('icons')
    if (part !== 'input' || kind !== 'tool' || !accept.has('schemaNarrower')) return false
    return isNarrowerInput(item.json, json)
  })
}

function isNarrowerInput(approved: Buffer, offered: Buffer): boolean {
  try {
    const before = new JsonObject(approved).raw('inputSchema')
    const after = new JsonObject(offered).raw('inputSchema')
    return before !== undefined && after !== undefined && isNarrower(before, after)
  } catch (error) {
    if (error instanceof JsonError) return false
    throw error
  }
}
