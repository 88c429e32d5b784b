/**
 * A tool's schemas, in one form for stateless clients and one for session clients.
 *
 * Stateless clients accept any JSON Schema as the output schema. Stateless clients also accept any members in addition
 * to `type: object` in the input schema. Session-era libraries require an object with a list of required names and with
 * properties that are objects. For session-era clients, boolean schemas are expanded and an unusable output schema is
 * left out.
 * Source: MCP 2025-11-25 and 2026-07-28, schema (Tool); JSON Schema 2020-12, core, 4.3.
 */
import { isFields } from '../../../../schemas/index.ts'
import { isNull, JsonObject, openArray, openObject } from '../../../mcp/index.ts'
import { isCompilable } from './compilable.ts'
import { changesTo, type ItemRule, type MemberRules, membersFit, text, wholeList } from './rules.ts'

/**
 * A schema in two forms, one for stateless clients and one for session clients. A form is undefined if its clients
 * cannot use the schema.
 */
export interface SchemaForms {
  readonly stateless: Buffer | undefined
  readonly session: Buffer | undefined
}

const objectTypeJson = Buffer.from('"object"')
const anyObject = Buffer.from('{"type":"object"}')
const anything = Buffer.from('{}')
const matchesNothing = Buffer.from('{"not":{}}')

/** Returns the input schema in both forms. Both forms are undefined if no arguments object can match this schema. */
export function inputForms(raw: Buffer | undefined): SchemaForms {
  if (raw === undefined || isNull(raw) || isEmpty(raw)) return { stateless: anyObject, session: anyObject }
  const typed = typedObject(raw, usableMembers)
  const session = typed && typedObject(typed, sessionMembers)
  return session ? { stateless: typed, session } : noForms
}

/** Returns the output schema in both forms. */
export function outputForms(raw: Buffer | undefined): SchemaForms {
  if (raw?.[0] !== openObject) return noForms
  const object = new JsonObject(raw)
  const changes = changesTo(object, dialect)
  const stateless = Object.keys(changes).length === 0 ? raw : object.with(changes)
  const typed = typedObject(stateless, usableMembers)
  const session = typed && typedObject(typed, sessionMembers)
  return { stateless, session: session && isCompilable(JSON.parse(session.toString())) ? session : undefined }
}

const noForms: SchemaForms = { stateless: undefined, session: undefined }

/** True if an input schema can be used unchanged in both forms. The value must not contain infinite numbers. */
export function isPlainInput(value: unknown): boolean {
  return isFields(value) && value['type'] !== undefined && membersFit(value, plainRules)
}

/** Like `isPlainInput`, but for an output schema. */
export function isPlainOutput(value: unknown): boolean {
  return isPlainInput(value) && isCompilable(value)
}

/**
 * True for an empty object or array. Some languages serialize an empty object as an array, or an empty array as an
 * object.
 */
function isEmpty(raw: Buffer): boolean {
  return raw.length <= maxEmptyBytes && /^(?:\[\s*\]|\{\s*\})$/.test(raw.toString())
}

const maxEmptyBytes = 64

/** A property with a null schema accepts any value. */
const property: ItemRule = {
  usable(raw) {
    switch (raw[0]) {
      case openArray:
        return isEmpty(raw) ? anything : raw
      case openObject:
      case 0x74:
      case 0x66:
        return raw
      default:
        return isNull(raw) ? anything : undefined
    }
  },
  fits: (value) =>
    typeof value === 'boolean' ||
    (typeof value === 'object' && value !== null && !(Array.isArray(value) && value.length === 0)),
}

const sessionProperty: ItemRule = {
  usable: (raw) => (raw[0] === 0x74 ? anything : raw[0] === 0x66 ? matchesNothing : raw),
  fits: (value) => typeof value !== 'boolean',
}

/**
 * Applies one rule to every member of an object. Returns undefined if any member is unusable. An empty array is treated
 * as an empty object.
 */
function members(rule: ItemRule): ItemRule {
  return {
    usable(raw) {
      if (raw[0] === openArray && isEmpty(raw)) return anything
      if (raw[0] !== openObject) return undefined
      const object = new JsonObject(raw)
      const changes = changesTo(
        object,
        object.names().map((name) => [name, rule] as const),
      )
      if (Object.values(changes).includes(undefined)) return undefined
      return Object.keys(changes).length === 0 ? raw : object.with(changes)
    },
    fits: (value) => isFields(value) && Object.values(value).every(rule.fits),
  }
}

/** Accepts `object`, alone or in a list of types, because arguments and structured results are always objects. */
const objectType: ItemRule = {
  usable(raw) {
    if (raw.equals(objectTypeJson)) return raw
    const types: unknown = JSON.parse(raw.toString())
    return types === 'object' || (Array.isArray(types) && types.includes('object'))
      ? objectTypeJson
      : undefined
  },
  fits: (value) => value === 'object',
}

/** A list of names. An empty object is treated as an empty list. */
const names: ItemRule = {
  usable: (raw) => (raw[0] === openObject && isEmpty(raw) ? noNames : wholeList(text).usable(raw)),
  fits: wholeList(text).fits,
}
const noNames = Buffer.from('[]')

const dialect: MemberRules = [['$schema', text]]
const usableMembers: MemberRules = [
  ['type', objectType],
  ['properties', members(property)],
  ['required', names],
]
const sessionMembers: MemberRules = [['properties', members(sessionProperty)]]
const plainRules: MemberRules = [...dialect, ...usableMembers, ...sessionMembers]

/**
 * Returns the schema with `type: object`, or undefined if the schema is unusable. A null member is treated as absent.
 */
function typedObject(raw: Buffer, rules: MemberRules): Buffer | undefined {
  if (raw[0] !== openObject) return undefined
  const object = new JsonObject(raw)
  const changes = changesTo(object, [...dialect, ...rules])
  for (const [name] of rules) {
    const own = object.raw(name)
    const unusable = Object.hasOwn(changes, name) && changes[name] === undefined
    if (unusable && own && !isNull(own)) return undefined
  }
  if (changes['type'] === undefined && (!object.raw('type') || Object.hasOwn(changes, 'type')))
    changes['type'] = objectTypeJson
  const form = Object.keys(changes).length === 0 ? raw : object.with(changes)
  return hasEndlessNumber(form) ? undefined : form
}

/** Matches numbers that may exceed the range of a double. Client libraries reject such numbers. */
const huge = /\d[eE]\+?\d{3}|\d{309}/

function hasEndlessNumber(raw: Buffer): boolean {
  const json = raw.toString()
  if (!huge.test(json)) return false
  let endless = false
  JSON.parse(json, (_name, value: unknown) => {
    endless ||= value === Infinity || value === -Infinity
    return value
  })
  return endless
}
