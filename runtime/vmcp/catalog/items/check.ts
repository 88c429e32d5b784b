/**
 * Checks an item in a backend's list, and repairs the item if the repair is unambiguous.
 *
 * Client libraries reject a whole list because of one malformed item. Gatehouse therefore offers items only in a form
 * that all libraries accept. Optional members that are null or of the wrong type are removed, and an input schema
 * without a type gets the type `object`. An item with an unusable name, address, input schema or arguments is left out.
 * Well-formed items keep their bytes unchanged.
 * Source: MCP 2025-11-25 and 2026-07-28, schema (Tool, Resource, ResourceTemplate, Prompt).
 */
import { isFields } from '../../../../schemas/index.ts'
import { isNull, JsonError, JsonObject, mirroredArguments } from '../../../mcp/index.ts'
import type { CatalogItem, ItemKind, ToolItem } from '../../model/catalog/entries.ts'
import {
  boolean,
  changesTo,
  list,
  number,
  oneOf,
  type MemberRules,
  membersFit,
  meta,
  type Repairs,
  shape,
  text,
  time,
  wholeList,
} from './rules.ts'
import { plainValue } from './plain.ts'
import { inputForms, isPlainInput, isPlainOutput, outputForms } from './schemas.ts'

/** No client could use an item above this size, and checking it would delay other requests. */
const maxItemBytes = 1024 * 1024
/** Checking this number of values takes about 20 ms in one turn of the event loop. */
const maxItemValues = 50_000

export interface UsableItem {
  /** Key of the item, which is the name of a tool or prompt, or the URI or template of a resource. */
  readonly key: string
  readonly json: Buffer
  /** The item's form for session-era clients, if that form differs from `json`. */
  readonly sessionJson?: Buffer
  /** Names of the repaired members. */
  readonly repaired: readonly string[]
}

export interface UnusableItem {
  /** Undefined if the item has no readable key. */
  readonly key: string | undefined
  /** Reason why the item is left out. */
  readonly failure: string
}

const icon = shape({
  members: { src: text, mimeType: text, sizes: list(text), theme: oneOf('light', 'dark') },
  required: ['src'],
})
const describedMembers: MemberRules = [
  ['title', text],
  ['description', text],
  ['icons', list(icon)],
  ['_meta', meta],
]
const annotations = shape({
  members: {
    audience: list(oneOf('user', 'assistant')),
    priority: number((value) => value >= 0 && value <= 1),
    lastModified: time,
  },
})
const toolAnnotations = shape({
  members: {
    title: text,
    readOnlyHint: boolean,
    destructiveHint: boolean,
    idempotentHint: boolean,
    openWorldHint: boolean,
  },
})
const promptArgument = shape({
  members: { name: text, title: text, description: text, required: boolean },
  required: ['name'],
})

/** Optional members of each kind of item. Unusable members are removed. */
const optionalRules: Readonly<Record<ItemKind, MemberRules>> = {
  tools: [
    ...describedMembers,
    ['annotations', toolAnnotations],
    ['execution', shape({ members: { taskSupport: oneOf('required', 'optional', 'forbidden') } })],
  ],
  resources: [
    ...describedMembers,
    ['mimeType', text],
    ['size', number(Number.isInteger)],
    ['annotations', annotations],
  ],
  templates: [...describedMembers, ['mimeType', text], ['annotations', annotations]],
  prompts: describedMembers,
}

/** Members that identify or describe an item. The first member is the item's key. */
const requiredMembers: Readonly<Record<ItemKind, readonly string[]>> = {
  tools: ['name'],
  resources: ['uri', 'name'],
  templates: ['uriTemplate', 'name'],
  prompts: ['name'],
}

const promptArguments = wholeList(promptArgument)

export function checkItem(kind: ItemKind, json: Buffer): UsableItem | UnusableItem {
  return plainItem(kind, json, plainValue(json)) ?? checkBytes(kind, json)
}

/**
 * Returns an item that all clients accept unchanged, or undefined if the item needs a closer check. `value` is the
 * parsed `json`, as returned by plainValue.
 */
export function plainItem(kind: ItemKind, json: Buffer, value: unknown): UsableItem | undefined {
  if (!isFields(value)) return undefined
  const names = requiredMembers[kind]
  if (!names.every((name) => typeof value[name] === 'string' && value[name] !== '')) return undefined
  if (!membersFit(value, optionalRules[kind]) || !(isPlain[kind]?.(value) ?? true)) return undefined
  return { key: String(value[names[0] ?? '']), json, repaired: [] }
}

/** Quick checks, each for one kind of item. These checks correspond to `specialRules`. */
const isPlain: Readonly<Partial<Record<ItemKind, (item: Readonly<Record<string, unknown>>) => boolean>>> = {
  tools: ({ inputSchema, outputSchema }) =>
    isPlainInput(inputSchema) && (outputSchema === undefined || isPlainOutput(outputSchema)),
  prompts: (item) => item['arguments'] === undefined || promptArguments.fits(item['arguments']),
}

function checkBytes(kind: ItemKind, json: Buffer): UsableItem | UnusableItem {
  let key: string | undefined
  try {
    if (json[0] !== 0x7b) return { key, failure: 'the item is not an object' }
    if (json.length > maxItemBytes) return { key, failure: `the item is larger than ${maxItemBytes} bytes` }
    const item = new JsonObject(json, { maxValues: maxItemValues })
    const [named = ''] = requiredMembers[kind]
    key = item.text(named) || undefined
    const lacking = requiredMembers[kind].find((name) => !item.text(name))
    if (key === undefined || lacking !== undefined)
      return { key, failure: `${lacking ?? named} must be a non-empty string` }
    const repairs = changesTo(item, optionalRules[kind])
    const special = specialRules[kind]?.(item, repairs)
    if (typeof special === 'string') return { key, failure: special }
    const repaired = Object.keys(repairs)
    const own = special && Object.keys(special).length > 0 ? item.with({ ...repairs, ...special }) : undefined
    return {
      key,
      json: repaired.length === 0 ? json : item.with(repairs),
      ...(own ? { sessionJson: own } : {}),
      repaired,
    }
  } catch (error) {
    if (error instanceof JsonError) return { key, failure: error.message }
    throw error
  }
}

/**
 * Rules, each for one kind of item. A rule adds repairs. A rule returns the members that session-era clients receive
 * instead, or the reason for leaving out the item.
 */
const specialRules: Readonly<
  Partial<Record<ItemKind, (item: JsonObject, repairs: Repairs) => Repairs | string | undefined>>
> = { tools: schemasOf, prompts: argumentsOf }

function schemasOf(item: JsonObject, repairs: Repairs): Repairs | string {
  const given = item.raw('inputSchema')
  const input = inputForms(given)
  if (!input.stateless) return 'inputSchema must be a JSON Schema of type object'
  if (input.stateless !== given) repairs['inputSchema'] = input.stateless
  const result = item.raw('outputSchema')
  const output = outputForms(result)
  if (output.stateless !== result) repairs['outputSchema'] = output.stateless
  const own: Repairs = {}
  if (input.session !== input.stateless) own['inputSchema'] = input.session
  if (output.session !== output.stateless) own['outputSchema'] = output.session
  return own
}

/** Checks a prompt's arguments. A client cannot pass an argument that has no name. */
function argumentsOf(item: JsonObject, repairs: Repairs): string | undefined {
  const given = item.raw('arguments')
  if (!given) return undefined
  const usable = promptArguments.usable(given)
  if (!usable && !isNull(given)) return 'arguments must be a list of named arguments'
  if (usable !== given) repairs['arguments'] = usable
  return undefined
}

/**
 * Returns the tool. If the tool's arguments are mirrored incorrectly, returns the reason why clients cannot call the
 * tool.
 */
export function callableTool(item: CatalogItem): ToolItem | string {
  if (!item.json.includes('x-mcp-header')) return { ...item, mirrored: [] }
  try {
    return { ...item, mirrored: mirroredArguments(new JsonObject(item.json).value('inputSchema')) }
  } catch (error) {
    return error instanceof Error ? error.message : 'x-mcp-header'
  }
}
