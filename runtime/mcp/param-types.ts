/**
 * Reads a message's params. For each method, checks the types of the params that Gatehouse uses. A param of the wrong
 * type is rejected, because treating it as absent would change the meaning of the request. For example, `cursor: 5`
 * would return the first page forever.
 *
 * This module checks the types of the members that are present, and the length of names and URIs. `null` is treated as
 * absent. The code that uses a param checks whether the param is required, known or allowed.
 * Source: MCP 2025-11-25 and 2026-07-28, schema.
 */
import { GatehouseError, own } from '../../schemas/index.ts'
import { isNull, nullByte, openObject, quoteByte } from './json/bytes.ts'
import { emptyObject, JsonObject, readAhead } from './json/object.ts'
import { scanElements } from './json/read.ts'
import { atOnce, type TurnWork } from './json/turns.ts'
import { JsonError, maxNameBytes } from './json/errors.ts'
import {
  type ClientMessage,
  clientRules,
  type Message,
  MessageError,
  scanMessage,
  whyUnread,
} from './message.ts'
import { metaKey } from './protocol.ts'

type Type =
  | 'string'
  /**
   * A name, a URI or a cursor. The length is limited, because the value is compared, looked up and included in
   * messages.
   */
  | 'name'
  | 'boolean'
  | 'object'
  /** A string or an integer. */
  | 'token'
  /** A list of strings. The same length limit applies to each string. */
  | 'strings'
  /** An object in which all members are strings. */
  | 'texts'
  | Members
interface Members {
  readonly [name: string]: Type
}

const pageMembers: Members = { cursor: 'name' }
const resource: Members = { uri: 'name' }
const infoMembers: Members = { name: 'string', version: 'string' }

/** Params that any request can have. */
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

/** Params of each method, in addition to the common params. */
const methodMembers: Readonly<Record<string, Members>> = {
  initialize: { protocolVersion: 'string', capabilities: 'object', clientInfo: infoMembers },
  'tools/list': pageMembers,
  'resources/list': pageMembers,
  'resources/templates/list': pageMembers,
  'prompts/list': pageMembers,
  'tools/call': { name: 'name', arguments: 'object', task: 'object' },
  'prompts/get': { name: 'name', arguments: 'texts' },
  'resources/read': resource,
  'resources/subscribe': resource,
  'resources/unsubscribe': resource,
  'skills/list': pageMembers,
  'skills/get': resource,
  'resources/directory/read': { ...resource, ...pageMembers },
  'completion/complete': {
    ref: { type: 'string', name: 'name', uri: 'name' },
    argument: { name: 'name', value: 'string' },
    context: { arguments: 'texts' },
  },
  'logging/setLevel': { level: 'string' },
  'tasks/get': { taskId: 'name' },
  'tasks/result': { taskId: 'name' },
  'tasks/update': { taskId: 'name' },
  'tasks/cancel': { taskId: 'name' },
  'subscriptions/listen': {
    notifications: {
      toolsListChanged: 'boolean',
      promptsListChanged: 'boolean',
      resourcesListChanged: 'boolean',
      resourceSubscriptions: 'strings',
      taskIds: 'strings',
    },
  },
}

const membersByMethod: Readonly<Record<string, Members>> = Object.fromEntries(
  Object.entries(methodMembers).map(([method, members]) => [method, { ...commonMembers, ...members }]),
)

/**
 * Members of params whose values are objects. This module checks these members because no other code checks them first.
 */
const checkedObjects = ['ref', 'notifications', 'inputResponses'] as const

/**
 * Returns a message's params as an object, without optional params that are null. The object is empty if params are
 * absent. Throws MessageError INVALID_PARAMS if the params, or a checked object in them, contain a duplicate member or
 * exceed a limit.
 */
export function paramsOf(message: Message): JsonObject {
  // Most params contain no null.
  if (message.params?.includes('null')) return atOnce(paramsInTurns(message))
  try {
    const params = new JsonObject(message.params ?? emptyObject.bytes, { ignoreCase: true })
    for (const name of checkedObjects) if (params.raw(name)?.[0] === openObject) params.object(name)
    return params
  } catch (cause) {
    throw paramsError(message, cause)
  }
}

/** Reads a large message and its params in slices. Throws the same errors as `scanMessage` and `paramsOf`. */
export function* readLargeMessage(body: Buffer): TurnWork<ClientMessage> {
  yield* readAhead(body, clientRules.maxValues)
  const message = scanMessage(body, clientRules)
  yield
  return { message, params: yield* paramsInTurns(message) }
}

function* paramsInTurns(message: Message): TurnWork<JsonObject> {
  const raw = message.params ?? emptyObject.bytes
  try {
    const given = new JsonObject(raw, { ignoreCase: true })
    yield
    const params = raw.includes('null') ? yield* withoutNulls(message.method, given) : given
    for (const name of checkedObjects) if (params.raw(name)?.[0] === openObject) params.object(name)
    return params
  } catch (cause) {
    throw paramsError(message, cause)
  }
}

function paramsError(message: Message, cause: unknown): unknown {
  if (!(cause instanceof JsonError)) return cause
  const why = whyUnread(cause) ?? 'the params cannot be read'
  return new MessageError('INVALID_PARAMS', message.id, { detail: `Invalid params: ${why}`, cause })
}

/**
 * Returns the params without known members that are null. Unknown members and tool arguments stay unchanged. Throws
 * JsonError if an object in the params contains a duplicate member.
 */
function* withoutNulls(method: string, params: JsonObject): TurnWork<JsonObject> {
  const changes = yield* nullChanges(params, own(membersByMethod, method) ?? commonMembers)
  return Object.keys(changes).length === 0 ? params : params.changed(changes)
}

function* nullChanges(object: JsonObject, types: Members): TurnWork<Record<string, Buffer | undefined>> {
  const changes: Record<string, Buffer | undefined> = {}
  for (const name in types) {
    const raw = object.raw(name)
    const type = types[name]
    if (raw === undefined || type === undefined) continue
    if (isNull(raw)) changes[name] = undefined
    else if (
      raw[0] === openObject &&
      (typeof type === 'object' || type === 'texts') &&
      raw.includes('null')
    ) {
      const inner = new JsonObject(raw)
      const nulls = type === 'texts' ? nullMembers(inner) : yield* nullChanges(inner, type)
      yield
      if (Object.keys(nulls).length === 0) continue
      changes[name] = inner.changed(nulls).bytes
      yield
    }
  }
  return changes
}

function nullMembers(object: JsonObject): Record<string, undefined> {
  const nulls = object.entries().filter(([, value]) => isNull(value))
  return Object.fromEntries(nulls.map(([name]) => [name, undefined]))
}

/** Maximum number of elements, which is far more than a single request may subscribe to. */
const maxElements = 1_000

interface TypeRule {
  /** First bytes of a value of this type. These bytes identify the type, because the text is valid JSON. */
  readonly begins: string
  readonly maxBytes?: number
  readonly words: string
}

const typeRules: Readonly<Record<Exclude<Type, Members>, TypeRule>> = {
  string: { begins: '"', words: 'a string' },
  name: { begins: '"', maxBytes: maxNameBytes, words: `a string of at most ${maxNameBytes} bytes` },
  boolean: { begins: 'tf', words: 'true or false' },
  object: { begins: '{', words: 'an object' },
  token: {
    begins: '"-0123456789',
    maxBytes: maxNameBytes,
    words: `a string or an integer of at most ${maxNameBytes} bytes`,
  },
  strings: { begins: '[', words: 'a list of strings' },
  texts: { begins: '{', words: 'an object' },
}

/** Checks the types of params. Throws an INVALID_PARAMS error that names the first param of the wrong type. */
export function checkParamTypes(method: string, params: JsonObject): void {
  checkMembers(params, own(membersByMethod, method) ?? commonMembers, '')
}

function checkMembers(object: JsonObject, types: Members, path: string): void {
  for (const name in types) {
    const raw = object.raw(name)
    const type = types[name]
    if (raw === undefined || raw[0] === nullByte || type === undefined) continue
    const at = `${path}${name}`
    const rule = typeRules[typeof type === 'object' ? 'object' : type]
    const isOfType = rule.begins.includes(String.fromCharCode(raw[0] ?? 0))
    if (!isOfType || raw.length > (rule.maxBytes ?? Infinity)) throw typeError(at, rule)
    if (type === 'token' && !isToken(raw)) throw typeError(at, rule)
    if (type === 'texts') checkTexts(raw, at)
    else if (type === 'strings') checkStrings(raw, at)
    else if (typeof type === 'object') {
      const member = readAt(at, () => object.object(name))
      checkMembers(member ?? emptyObject, type, `${at}.`)
    }
  }
}

function isToken(raw: Buffer): boolean {
  return raw[0] === quoteByte || /^-?\d+$/.test(raw.toString('latin1', 0, 64))
}

function checkTexts(raw: Buffer, path: string): void {
  for (const [name, value] of readAt(path, () => new JsonObject(raw).entries()))
    if (value[0] !== quoteByte) throw typeError(`${path}.${displayName(name)}`, typeRules.string)
}

function checkStrings(raw: Buffer, path: string): void {
  for (const element of elementsIn(raw, path))
    if (element[0] !== quoteByte || element.length > maxNameBytes) throw typeError(path, typeRules.name)
}

function elementsIn(raw: Buffer, path: string): Buffer[] {
  try {
    return scanElements(raw, maxElements)
  } catch (cause) {
    if (!(cause instanceof JsonError)) throw cause
    throw invalid(`${path} must have at most ${maxElements} elements`, cause)
  }
}

/** Returns the result of `read`. Converts a JsonError to an INVALID_PARAMS error with `path`. */
function readAt<T>(path: string, read: () => T): T {
  try {
    return read()
  } catch (cause) {
    if (!(cause instanceof JsonError)) throw cause
    throw invalid(`${path}: ${whyUnread(cause) ?? 'the value cannot be read'}`, cause)
  }
}

/**
 * Returns an argument name for a message. Returns `*` if the name has unusual characters, because the sender controls
 * the name.
 */
function displayName(name: string): string {
  return /^[\w.-]{1,64}$/.test(name) ? name : '*'
}

function typeError(path: string, { words }: TypeRule): GatehouseError {
  return invalid(`${path} must be ${words}`)
}

function invalid(what: string, cause?: unknown): GatehouseError {
  return new GatehouseError('INVALID_PARAMS', { detail: `Invalid params: ${what}`, cause })
}
