/**
 * Rules for members of an item. For raw JSON, a rule returns the value to use. The result is the same buffer for a
 * valid value, a new buffer for a repaired value, and undefined for a value to remove. Null is always removed. For a
 * parsed value, a rule only checks validity. This check is faster, and sufficient for nearly all items.
 */
import { JsonObject, openArray, openObject, quoteByte, scanElements } from '../../../mcp/index.ts'
import { isFields } from '../../../../schemas/index.ts'

export interface ItemRule {
  readonly usable: (raw: Buffer) => Buffer | undefined
  /** True if `usable` returns the JSON of this value unchanged. */
  readonly fits: (value: unknown) => boolean
}

export const text: ItemRule = {
  usable: (raw) => (raw[0] === quoteByte ? raw : undefined),
  fits: (value) => typeof value === 'string',
}

/**
 * Accepts every object as `_meta`. Throws JsonError if the object, or a member that Gatehouse reads, contains duplicate
 * members.
 */
export const meta: ItemRule = {
  usable(raw) {
    if (raw[0] !== openObject) return undefined
    const object = new JsonObject(raw)
    const ui = object.object('ui')
    for (const read of [ui?.raw('csp'), ui?.raw('permissions'), object.raw('openai/widgetCSP')])
      if (read?.[0] === openObject) void new JsonObject(read)
    return raw
  },
  fits: isFields,
}

export const boolean: ItemRule = {
  usable: (raw) => (raw[0] === 0x74 || raw[0] === 0x66 ? raw : undefined),
  fits: (value) => typeof value === 'boolean',
}

export function number(isValid: (value: number) => boolean): ItemRule {
  return {
    usable: (raw) => (startsNumber(raw[0]) && isValid(Number(raw.toString('latin1'))) ? raw : undefined),
    fits: (value) => typeof value === 'number' && isValid(value),
  }
}

function startsNumber(byte: number | undefined): boolean {
  return byte === 0x2d || (byte !== undefined && byte >= 0x30 && byte <= 0x39)
}

export function oneOf(...values: readonly string[]): ItemRule {
  return textThat((value) => values.includes(value))
}

function textThat(isValid: (value: string) => boolean): ItemRule {
  return {
    usable: (raw) => (raw[0] === quoteByte && isValid(String(JSON.parse(raw.toString()))) ? raw : undefined),
    fits: (value) => typeof value === 'string' && isValid(value),
  }
}

const timeText =
  /^(\d{4})-(\d\d)-(\d\d)T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d+)?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/

/** Accepts RFC 3339 times with an offset. */
export const time: ItemRule = textThat((value) => {
  const match = timeText.exec(value)
  if (!match) return false
  const [year, month, day] = match.slice(1).map(Number)
  const date = new Date(Date.UTC(year ?? 0, (month ?? 0) - 1, day))
  // Date.UTC adds 1900 to years below 100.
  date.setUTCFullYear(year ?? 0, (month ?? 0) - 1, day)
  return date.getUTCMonth() === (month ?? 0) - 1 && date.getUTCDate() === day
})

/** Removes invalid elements from a list, and removes the whole list if no elements remain. */
export function list(rule: ItemRule): ItemRule {
  return {
    usable(raw) {
      if (raw[0] !== openArray) return undefined
      const elements = scanElements(raw)
      const usable = elements.map(rule.usable)
      if (usable.every((element, i) => element === elements[i])) return raw
      const left = usable.filter((element) => element !== undefined)
      return left.length > 0 ? Buffer.from(`[${left.map(String).join(',')}]`) : undefined
    },
    fits: (value) => Array.isArray(value) && value.every(rule.fits),
  }
}

/** Removes the whole list if any element is invalid. */
export function wholeList(rule: ItemRule): ItemRule {
  const each = list(rule)
  return {
    usable(raw) {
      if (raw[0] !== openArray) return undefined
      return scanElements(raw).every((element) => rule.usable(element) !== undefined)
        ? each.usable(raw)
        : undefined
    },
    fits: each.fits,
  }
}

export interface ItemShape {
  readonly members: Readonly<Record<string, ItemRule>>
  /** Names of the members that the object must have. */
  readonly required?: readonly string[]
}

/** Removes invalid members of an object and keeps unknown members. Throws JsonError for duplicate members. */
export function shape({ members, required = [] }: ItemShape): ItemRule {
  const rules = Object.entries(members)
  return {
    usable(raw) {
      if (raw[0] !== openObject) return undefined
      const object = new JsonObject(raw)
      const changes = changesTo(object, rules)
      for (const name of required) {
        if (!object.raw(name) || (Object.hasOwn(changes, name) && changes[name] === undefined))
          return undefined
      }
      return Object.keys(changes).length === 0 ? raw : object.with(changes)
    },
    fits: (value) =>
      isFields(value) && required.every((name) => value[name] !== undefined) && membersFit(value, rules),
  }
}

/** Rules by member name. The names must differ from the inherited members of objects. */
export type MemberRules = readonly (readonly [string, ItemRule])[]

/** New values, keyed by member name. A rule removes the member if the new value is undefined. */
export type Repairs = Record<string, Buffer | undefined>

/** Returns the changes that the rules require. */
export function changesTo(object: JsonObject, rules: MemberRules): Repairs {
  // A backend can supply any name, including `__proto__`.
  const changes = Object.create(null) as Repairs
  for (const [name, rule] of rules) {
    const own = object.raw(name)
    if (own === undefined) continue
    const usable = rule.usable(own)
    if (usable !== own) changes[name] = usable
  }
  return changes
}

/** True if the rules leave every member unchanged. */
export function membersFit(value: Readonly<Record<string, unknown>>, rules: MemberRules): boolean {
  for (const [name, rule] of rules) {
    const own = value[name]
    if (own !== undefined && !rule.fits(own)) return false
  }
  return true
}
