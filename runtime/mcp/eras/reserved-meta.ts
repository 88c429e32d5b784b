/**
 * Keys of `_meta` that belong to the protocol itself: they describe one hop, so what a server says by them ends at the
 * gateway. Those that mean the same at both ends pass.
 * Source: MCP 2025-11-25 and 2026-07-28, basic, "General fields" (`_meta`).
 */
import { type Changes, JsonObject } from '../json-object.ts'
import { scanElements } from '../json-scan.ts'

const PREFIX = 'io.modelcontextprotocol/'
const END_TO_END: ReadonlySet<string> = new Set([
  `${PREFIX}related-task`,
  `${PREFIX}model-immediate-response`,
])
/** Members in which objects with `_meta` of their own lie. */
const CONTAINERS: ReadonlySet<string> = new Set(['content', 'contents', 'messages', 'resource'])

/** What every reserved key contains, but for the characters that may be escaped. */
const MARK = 'io.modelcontextprotocol'

/**
 * A result or params object without reserved keys; the same buffer when it has none. Throws JsonError when a member that
 * matters stands there twice.
 */
export function withoutReservedMeta(object: Buffer): Buffer {
  const mayHaveSome = object.includes(MARK) || object.includes('\\u')
  return mayHaveSome && object[0] === 0x7b ? cleaned(object) : object
}

function cleaned(raw: Buffer): Buffer {
  const object = new JsonObject(raw)
  const changes: Record<string, Buffer | undefined> = {}
  for (const [name, value] of object.entries()) {
    const instead =
      name === '_meta' ? cleanedMeta(value) : CONTAINERS.has(name) ? cleanedContainer(value) : value
    if (instead !== value) changes[name] = instead
  }
  return Object.keys(changes).length === 0 ? raw : object.with(changes)
}

function cleanedMeta(raw: Buffer): Buffer | undefined {
  if (raw[0] !== 0x7b) return raw
  const meta = new JsonObject(raw)
  const reserved = meta.names().filter((name) => name.startsWith(PREFIX) && !END_TO_END.has(name))
  if (reserved.length === 0) return raw
  if (reserved.length === meta.names().length) return undefined
  const changes: Changes = Object.fromEntries(reserved.map((name) => [name, undefined]))
  return meta.with(changes)
}

function cleanedContainer(raw: Buffer): Buffer {
  if (raw[0] === 0x7b) return cleaned(raw)
  if (raw[0] !== 0x5b) return raw
  const elements = scanElements(raw)
  const instead = elements.map((element) => (element[0] === 0x7b ? cleaned(element) : element))
  if (instead.every((element, i) => element === elements[i])) return raw
  return Buffer.concat([
    OPEN,
    ...instead.flatMap((element, i) => (i === 0 ? [element] : [COMMA, element])),
    CLOSE,
  ])
}

const OPEN = Buffer.from('[')
const COMMA = Buffer.from(',')
const CLOSE = Buffer.from(']')
