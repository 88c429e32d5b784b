/**
 * Removes from a list the items that the caller is not allowed to use. Other items keep their original bytes.
 *
 * The filter removes an item without a readable name, because the item cannot be checked.
 * Source: docs/reference/specification/virtual-server.md#endpoints, endpoints (tools/list: hidden tools are omitted).
 */
import { GatehouseError } from '../../schemas/index.ts'
import { arrayEnd, arrayStart, comma, JsonError, JsonObject, scanElements } from '../mcp/index.ts'
import { hintsIn, type ListRow, type ToolHints } from './requests.ts'

export interface ListedItem {
  readonly id: string
  readonly hints: ToolHints
  readonly json: Buffer
}

export interface ParsedList {
  readonly result: JsonObject
  readonly items: readonly ListedItem[]
  /** True when an item had no readable name. */
  readonly incomplete: boolean
}

/** Splits a raw result object. Throws BACKEND_PROTOCOL when the result is not the expected list. */
export function parseList({ member, key, action }: ListRow, raw: Buffer): ParsedList {
  try {
    const result = new JsonObject(raw)
    const elements = scanElements(result.raw(member) ?? Buffer.alloc(0))
    const items = elements.flatMap((json) => readItem(json, key, action === 'call_tool') ?? [])
    return { result, items, incomplete: items.length < elements.length }
  } catch (cause) {
    if (cause instanceof JsonError) throw new GatehouseError('BACKEND_PROTOCOL', { cause })
    throw cause
  }
}

function readItem(json: Buffer, key: string, isTool: boolean): ListedItem | undefined {
  if (json[0] !== 0x7b) return undefined
  try {
    const item = new JsonObject(json)
    const id = item.text(key)
    return id === undefined
      ? undefined
      : { id, hints: isTool ? hintsIn(item.value('annotations'), item.value('_meta')) : {}, json }
  } catch (error) {
    if (error instanceof JsonError) return undefined
    throw error
  }
}

/** Returns the result with only the allowed items. */
export function withItems(
  { member }: ListRow,
  { result }: ParsedList,
  allowed: readonly ListedItem[],
): Buffer {
  const parts = allowed.flatMap(({ json }, index) => (index === 0 ? [json] : [comma, json]))
  return result.with({ [member]: Buffer.concat([arrayStart, ...parts, arrayEnd]) })
}
