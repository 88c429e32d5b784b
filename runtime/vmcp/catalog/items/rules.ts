/**
 * Rules for members of an item: each takes the raw JSON of a value and answers the value to use in its place, the same
 * buffer when it is usable as it stands, or undefined when it has no meaning and must go. Null has none anywhere.
 */
import { JsonObject, openArray, openObject, quoteByte, scanElements } from '../../../mcp/index.ts'

export type ItemRule = (raw: Buffer) => Buffer | undefined

export const text: ItemRule = (raw) => (raw[0] === quoteByte ? raw : undefined)

export const anyObject: ItemRule = (raw) => (raw[0] === openObject ? raw : undefined)

export const boolean: ItemRule = (raw) => (raw[0] === 0x74 || raw[0] === 0x66 ? raw : undefined)

export function number(fits: (value: number) => boolean): ItemRule {
  return (raw) => (startsNumber(raw[0]) && fits(Number(raw.toString('latin1'))) ? raw : undefined)
}

function startsNumber(byte: number | undefined): boolean {
  return byte === 0x2d || (byte !== undefined && byte >= 0x30 && byte <= 0x39)
}

export function oneOf(...values: readonly string[]): ItemRule {
  return (raw) =>
    raw[0] === quoteByte && values.includes(String(JSON.parse(raw.toString()))) ? raw : undefined
}

const timeText =
  /^(\d{4})-(\d\d)-(\d\d)T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d+)?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/

/** RFC 3339, with an offset. */
export const time: ItemRule = (raw) => {
  const match = raw[0] === quoteByte ? timeText.exec(String(JSON.parse(raw.toString()))) : null
  if (!match) return undefined
  const [year, month, day] = match.slice(1).map(Number)
  const date = new Date(Date.UTC(year ?? 0, (month ?? 0) - 1, day))
  // Years before 100 stand for others in Date.UTC.
  date.setUTCFullYear(year ?? 0, (month ?? 0) - 1, day)
  return date.getUTCMonth() === (month ?? 0) - 1 && date.getUTCDate() === day ? raw : undefined
}

/** A list without the elements that have no meaning; none is left: no meaning. */
export function list(rule: ItemRule): ItemRule {
  return (raw) => {
    if (raw[0] !== openArray) return undefined
    const elements = scanElements(raw)
    const usable = elements.map(rule)
    if (usable.every((element, i) => element === elements[i])) return raw
    const left = usable.filter((element) => element !== undefined)
    return left.length > 0 ? Buffer.from(`[${left.map(String).join(',')}]`) : undefined
  }
}

/** A list of which every element counts: one without meaning takes the meaning of the whole. */
export function wholeList(rule: ItemRule): ItemRule {
  const each = list(rule)
  return (raw) => {
    if (raw[0] !== openArray) return undefined
    return scanElements(raw).every((element) => rule(element) !== undefined) ? each(raw) : undefined
  }
}

export interface ItemShape {
  readonly members: Readonly<Record<string, ItemRule>>
  /** Members without which the whole has no meaning. */
  readonly required?: readonly string[]
}

/** An object: unusable members are taken out, unknown ones stay. Throws JsonError when a member stands there twice. */
export function shape({ members, required = [] }: ItemShape): ItemRule {
  const rules = Object.entries(members)
  return (raw) => {
    if (raw[0] !== openObject) return undefined
    const object = new JsonObject(raw)
    const changes = changesTo(object, rules)
    for (const name of required) {
      if (!object.raw(name) || (Object.hasOwn(changes, name) && changes[name] === undefined)) return undefined
    }
    return Object.keys(changes).length === 0 ? raw : object.with(changes)
  }
}

/** New values of members by name; undefined takes the member out. */
export type Repairs = Record<string, Buffer | undefined>

/** What the rules make of an object's members, where that differs from what is there. */
export function changesTo(object: JsonObject, rules: readonly (readonly [string, ItemRule])[]): Repairs {
  // Names may be a backend's own, `__proto__` among them.
  const changes = Object.create(null) as Repairs
  for (const [name, rule] of rules) {
    const own = object.raw(name)
    if (own === undefined) continue
    const usable = rule(own)
    if (usable !== own) changes[name] = usable
  }
  return changes
}
