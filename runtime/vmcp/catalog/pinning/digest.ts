/**
 * Digests of items, one for each part. Two digests are equal if and only if clients and models see the same definition.
 *
 * A part's digest is the SHA-256 hash of `gatehouse.pin.v1\0<part>\0` and the part's canonical text. The item's digest
 * uses the same formula, with `item` as the part name and a JSON object with the part digests as the text. A changed
 * formula requires a new name.
 * Source: RFC 8785; docs/guides/tool-pinning.md.
 */
import { createHash } from 'node:crypto'
import { pinScheme } from '../../../../schemas/index.ts'
import { atOnce, canonicalText, inTurns, JsonObject, type TurnWork } from '../../../mcp/index.ts'
import { type PinnedPart, type PinDigests, type PinKind, parts } from '../../model/catalog/pinning.ts'

/** Items above this size are hashed in separate turns of the event loop. */
const largeItemBytes = 16 * 1024
/** Maximum number of values in a listed item, including added defaults. */
const maxValues = 60_000

/** Absent hints are hashed as their default values. */
const hintDefaults = {
  readOnlyHint: 'false',
  destructiveHint: 'true',
  idempotentHint: 'false',
  openWorldHint: 'true',
} as const

type PartOf = Readonly<Record<string, PinnedPart>>

const memberParts: Readonly<Record<Exclude<PinKind, 'instructions'>, PartOf>> = {
  tool: {
    title: 'text',
    description: 'text',
    inputSchema: 'input',
    outputSchema: 'output',
    annotations: 'hints',
    execution: 'execution',
    icons: 'icons',
    _meta: 'meta',
  },
  prompt: { title: 'text', description: 'text', arguments: 'input', icons: 'icons', _meta: 'meta' },
  skill: { frontmatter: 'text', resources: 'files', _meta: 'meta' },
  resourceTemplate: { name: 'text', title: 'text', description: 'text', icons: 'icons', _meta: 'meta' },
}

/** Members that identify an item. These members are not hashed as separate parts. */
const keyMembers: Readonly<Record<Exclude<PinKind, 'instructions'>, string>> = {
  tool: 'name',
  prompt: 'name',
  resourceTemplate: 'uriTemplate',
  skill: 'uri',
}

/**
 * Returns each part of an item as JSON text that is not yet canonical. `ignore` lists JSON pointers to members of
 * `_meta`.
 */
export function partsOf(
  kind: PinKind,
  json: Buffer,
  ignore: readonly string[] = [],
): ReadonlyMap<PinnedPart, Buffer> {
  if (kind === 'instructions') return new Map([['text', json]])
  const grouped = new Map<PinnedPart, [string, Buffer][]>()
  for (const [name, raw] of new JsonObject(json).entries()) {
    if (name === keyMembers[kind]) continue
    const table = memberParts[kind]
    const part = Object.hasOwn(table, name) ? (table[name] ?? 'other') : 'other'
    grouped.set(part, [...(grouped.get(part) ?? []), [name, raw]])
  }
  const found = new Map<PinnedPart, Buffer>()
  for (const [part, members] of grouped) {
    const [first] = members
    const text = part === 'text' || part === 'other' ? objectOf(members) : (first?.[1] ?? Buffer.from('null'))
    found.set(part, text)
  }
  if (kind === 'tool') found.set('hints', withDefaults(found.get('hints')))
  const meta = found.get('meta')
  if (meta && ignore.length > 0) {
    const rest = withoutIgnored(meta, ignore)
    if (rest) found.set('meta', rest)
    else found.delete('meta')
  }
  return found
}

function objectOf(members: readonly (readonly [string, Buffer])[]): Buffer {
  const pieces = members.flatMap(([name, raw]) => [Buffer.from(`,${JSON.stringify(name)}:`), raw])
  const all = Buffer.concat([...pieces, Buffer.from('}')])
  all[0] = 0x7b
  return all
}

function withDefaults(annotations: Buffer | undefined): Buffer {
  const own = new JsonObject(annotations ?? Buffer.from('{}'))
  const given = own.names()
  const missing = Object.entries(hintDefaults).filter(([name]) => !given.includes(name))
  return own.with(Object.fromEntries(missing))
}

/** Returns undefined if no members remain. */
function withoutIgnored(meta: Buffer, ignore: readonly string[]): Buffer | undefined {
  if (meta[0] !== 0x7b) return meta
  const own = new JsonObject(meta)
  const names = own.names()
  const gone = ignore.map(nameIn).filter((name) => name !== undefined && names.includes(name))
  if (gone.length === 0) return meta
  if (gone.length === names.length) return undefined
  return own.with(Object.fromEntries(gone.map((name) => [name, undefined])))
}

/** Returns the name of the `_meta` member to which a pointer refers. */
function nameIn(pointer: string): string | undefined {
  const found = /^\/_meta\/([^/]+)$/.exec(pointer)?.[1]
  return found?.replaceAll('~1', '/').replaceAll('~0', '~')
}

/** Computes an item's digests. Throws JsonError for duplicate members at any depth. */
export function* digestWork(
  kind: PinKind,
  json: Buffer,
  ignore: readonly string[] = [],
): TurnWork<PinDigests> {
  const digests: Partial<Record<PinnedPart, string>> = {}
  for (const [part, raw] of partsOf(kind, json, ignore)) {
    const schema = kind === 'tool' && (part === 'input' || part === 'output')
    digests[part] = hashPart(part, yield* canonicalText(raw, { schema, maxValues }))
  }
  const sorted = parts.filter((part) => digests[part] !== undefined).toSorted()
  const whole = JSON.stringify(Object.fromEntries(sorted.map((part) => [part, digests[part]])))
  return { digest: hashPart('item', whole), parts: digests }
}

function hashPart(part: string, text: string): string {
  return `sha256:${createHash('sha256').update(`${pinScheme}\0${part}\0${text}`).digest('hex')}`
}

/** Like `digestWork`, but hashes small items within the current turn of the event loop. */
export async function digestsOf(
  kind: PinKind,
  json: Buffer,
  ignore: readonly string[] = [],
): Promise<PinDigests> {
  const work = digestWork(kind, json, ignore)
  return json.length > largeItemBytes ? inTurns(work) : atOnce(work)
}

/** Returns the parts that have different digests, in a fixed order. */
export function differingParts(a: PinDigests, b: PinDigests): readonly PinnedPart[] {
  return parts.filter((part) => a.parts[part] !== b.parts[part])
}
