/**
 * Takes out of a list what a caller may not use. What stays is the bytes that the list was made of.
 *
 * An item without a readable name is taken out: nobody could be asked about it.
 * Source: docs/specification/virtual-server.md#endpoints, endpoints (tools/list: hidden tools are omitted).
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
  /** True when some item had no readable name. */
  readonly incomplete: boolean
}

/** Takes a raw result object apart. Throws BACKEND_PROTOCOL when it is not the list that it should be. */
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
      : { id, hints: isTool ? hintsIn(item.value('annotations')) : {}, json }
  } catch (error) {
    if (error instanceof JsonError) return undefined
    throw error
  }
}

/** The result with only some of its items. */
export function withItems(
  { member }: ListRow,
  { result }: ParsedList,
  allowed: readonly ListedItem[],
): Buffer {
  const parts = allowed.flatMap(({ json }, index) => (index === 0 ? [json] : [comma, json]))
  return result.with({ [member]: Buffer.concat([arrayStart, ...parts, arrayEnd]) })
}
