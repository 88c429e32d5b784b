/**
 * Reads the params of a message, and checks the types of those that Gatehouse uses, method by method. A param of
 * another type is rejected: treating it as absent would change the meaning of the request (`cursor: 5` would return
 * the first page forever).
 *
 * Checks types, and the length of names and URIs, of members that are present; `null` is treated as absent. The code
 * that uses a param checks whether it is required, known or allowed.
 * Source: MCP 2025-11-25 and 2026-07-28, schema.
 */
import { GatehouseError, own } from '../../schemas/index.ts'
import { emptyObject, JsonObject } from './json/object.ts'
import { scanElements } from './json/read.ts'
import { JsonError } from './json/errors.ts'
import { type Message, MessageError, whyUnread } from './message.ts'
import { metaKey } from './protocol.ts'

type Type =
  | 'string'
  /** A string that is a name, a URI or a cursor: compared, looked up and repeated in messages, so it is bounded. */
  | 'name'
  | 'boolean'
  | 'object'
  /** A string or an integer. */
  | 'token'
  /** A list of strings that are bounded in the same way. */
  | 'strings'
  /** An object whose members are all strings. */
  | 'texts'
  | Members
interface Members {
  readonly [name: string]: Type
}

const pageMembers: Members = { cursor: 'name' }
const resource: Members = { uri: 'name' }
const infoMembers: Members = { name: 'string', version: 'string' }

const paramMembers: Readonly<Record<string, Members>> = {
  initialize: { protocolVersion: 'string', capabilities: 'object', clientInfo: infoMembers },
  'tools/list': pageMembers,
  'resources/list': pageMembers,
  'resources/templates/list': pageMembers,
  'prompts/list': pageMembers,
  'tools/call': { name: 'name', arguments: 'object' },
  'prompts/get': { name: 'name', arguments: 'texts' },
  'resources/read': resource,
  'resources/subscribe': resource,
  'resources/unsubscribe': resource,
  'completion/complete': {
    ref: { type: 'string', name: 'name', uri: 'name' },
    argument: { name: 'name', value: 'string' },
    context: { arguments: 'texts' },
  },
  'logging/setLevel': { level: 'string' },
  'subscriptions/listen': {
    notifications: {
      toolsListChanged: 'boolean',
      promptsListChanged: 'boolean',
      resourcesListChanged: 'boolean',
      resourceSubscriptions: 'strings',
    },
  },
}

/** Params that any request may have. */
const commonMembers: Members = {
  _meta: {
    progressToken: 'token',
    [metaKey.protocolVersion]: 'string',
    [metaKey.clientInfo]: infoMembers,
    [metaKey.clientCapabilities]: 'object',
    [metaKey.logLevel]: 'string',
  },
  requestState: 'string',
  inputResponses: 'object',
}

/** Object members of params that are checked here, because no other code checks them first. */
const readObjects = ['ref', 'notifications', 'inputResponses'] as const

/**
 * Returns the params of a message as an object: empty when absent, and without optional params that are null. Throws
 * MessageError INVALID_PARAMS when the params, or a checked object in them, contain a member twice.
 */
export function paramsOf(message: Message): JsonObject {
  try {
    const given = new JsonObject(message.params ?? emptyObject.bytes, { ignoreCase: true })
    const params = withoutNulls(message.method, given)
    for (const name of readObjects) params.object(name)
    return params
  } catch (cause) {
    const why = whyUnread(cause)
    if (why === undefined) throw cause
    throw new MessageError('INVALID_PARAMS', message.id, { detail: `Invalid params: ${why}`, cause })
  }
}

/**
 * Returns the params without known members that are null. Unknown members and tool arguments stay unchanged. Throws
 * JsonError when an object in the params contains a member twice.
 */
function withoutNulls(method: string, params: JsonObject): JsonObject {
  if (!params.bytes.includes('null')) return params
  const members = { ...commonMembers, ...own(paramMembers, method) }
  const changes = nullChanges(params, members)
  if (Object.keys(changes).length === 0) return params
  return new JsonObject(params.with(changes), { ignoreCase: true })
}

function nullChanges(object: JsonObject, types: Members): Record<string, Buffer | undefined> {
  const changes: Record<string, Buffer | undefined> = {}
  for (const name in types) {
    const raw = object.raw(name)
    const type = types[name]
    if (raw === undefined || type === undefined) continue
    if (raw[0] === nullByte) changes[name] = undefined
    else if (
      raw[0] === objectByte &&
      (typeof type === 'object' || type === 'texts') &&
      raw.includes('null')
    ) {
      const inner = new JsonObject(raw)
      const nulls = type === 'texts' ? nullMembers(inner) : nullChanges(inner, type)
      if (Object.keys(nulls).length > 0) changes[name] = inner.with(nulls)
    }
  }
  return changes
}

function nullMembers(object: JsonObject): Record<string, undefined> {
  const nulls = object.entries().filter(([, value]) => value[0] === nullByte)
  return Object.fromEntries(nulls.map(([name]) => [name, undefined]))
}

/** Throws INVALID_PARAMS naming the first param of a wrong type. */
export function checkParamTypes(method: string, params: JsonObject): void {
  checkMembers(params, commonMembers, '')
  const members = own(paramMembers, method)
  if (members) checkMembers(params, members, '')
}

function checkMembers(object: JsonObject, types: Members, path: string): void {
  for (const name in types) {
    const raw = object.raw(name)
    const type = types[name]
    if (raw === undefined || raw[0] === nullByte || type === undefined) continue
    const at = `${path}${name}`
    if (typeof type === 'object') checkMembers(memberOf(object, name, at), type, `${at}.`)
    else checkValue(raw, type, at)
  }
}

function checkValue(raw: Buffer, type: Exclude<Type, Members>, path: string): void {
  if (type === 'texts')
    for (const [name, value] of objectIn(raw, path).entries())
      checkValue(value, 'string', `${path}.${shown(name)}`)
  else if (type === 'strings') {
    for (const element of elementsIn(raw, path)) checkValue(element, 'name', path)
  } else if (type === 'name' || type === 'token') {
    if (!firstBytes[type].test(first(raw)) || raw.length > maxNameBytes) throw wrong(path, type)
    if (type === 'token' && !isToken(raw)) throw wrong(path, type)
  } else if (!firstBytes[type].test(first(raw))) throw wrong(path, type)
}

function first(raw: Buffer): string {
  return String.fromCharCode(raw[0] ?? 0)
}

/** Longer than any URI that a server here can offer. */
const maxNameBytes = 64 * 1024

/** Far more than one request can subscribe to. */
const maxElements = 1_000
const nullByte = 0x6e
const objectByte = 0x7b
const array = 0x5b
const stringByte = 0x22
/** The text is valid JSON, so the first byte identifies the type. */
const firstBytes = { string: /"/, name: /"/, boolean: /[tf]/, object: /\{/, token: /["\-\d]/ } as const

function elementsIn(raw: Buffer, path: string): Buffer[] {
  if (raw[0] !== array) throw wrong(path, 'strings')
  try {
    return scanElements(raw, maxElements)
  } catch (cause) {
    if (!(cause instanceof JsonError)) throw cause
    throw invalid(`${path} must have at most ${maxElements} elements`, cause)
  }
}

function isToken(raw: Buffer): boolean {
  return raw[0] === stringByte || /^-?\d+$/.test(raw.toString('latin1', 0, 64))
}

function memberOf(object: JsonObject, name: string, path: string): JsonObject {
  let member: JsonObject | undefined
  try {
    member = object.object(name)
  } catch (cause) {
    throw unread(path, cause)
  }
  if (!member) throw wrong(path, 'object')
  return member
}

function objectIn(raw: Buffer, path: string): JsonObject {
  if (raw[0] !== objectByte) throw wrong(path, 'object')
  try {
    return new JsonObject(raw)
  } catch (cause) {
    throw unread(path, cause)
  }
}

function unread(path: string, cause: unknown): unknown {
  if (!(cause instanceof JsonError)) return cause
  return invalid(`${path}: ${whyUnread(cause) ?? 'it cannot be read'}`, cause)
}

/** Names of arguments are the sender's own text. */
function shown(name: string): string {
  return /^[\w.-]{1,64}$/.test(name) ? name : '*'
}

const wordTable = {
  string: 'a string',
  name: `a string of at most ${maxNameBytes} bytes`,
  boolean: 'true or false',
  object: 'an object',
  token: `a string or an integer of at most ${maxNameBytes} bytes`,
  strings: 'a list of strings',
  texts: 'an object of strings',
} as const

function wrong(path: string, type: keyof typeof wordTable): GatehouseError {
  return invalid(`${path} must be ${wordTable[type]}`)
}

function invalid(what: string, cause?: unknown): GatehouseError {
  return new GatehouseError('INVALID_PARAMS', { detail: `Invalid params: ${what}`, cause })
}
