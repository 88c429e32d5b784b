/** Reads the information that a client declared about itself. A member of the wrong type is treated as not declared. */
import { hash } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { GatehouseError, byText } from '../../../schemas/index.ts'
import { abilitiesIn, type Era, JsonError, JsonObject, MessageError } from '../../mcp/index.ts'
import type { Caller } from '../../net/index.ts'
import { appsExtensionId, ExtensionSet } from './extensions.ts'
import type { ClientAbilities, OperationClient } from './session.ts'

const maxCachedAbilities = 1_000
/**
 * Size limits for a client's declarations. The declarations are stored with the client's session and sent to every
 * backend.
 */
const maxCapabilitiesBytes = 16 * 1024
const maxInfoBytes = 16 * 1024
/** Capabilities that the protocol itself defines, with their members. */
const protocolCapabilities: Readonly<Record<string, readonly string[]>> = {
  elicitation: ['form', 'url'],
  sampling: ['context', 'tools'],
  roots: ['listChanged'],
}

/** Selects the extensions that a client's capabilities keep, as raw JSON by id. Throws JsonError. */
type SelectExtensions = (declared: JsonObject) => ReadonlyMap<string, Buffer>

const abilitiesBySet = new WeakMap<ExtensionSet, Map<string, ClientAbilities>>()

const everyExtension = new ExtensionSet()

export const noAbilities: ClientAbilities = restoreAbilities(Buffer.from('{}'))

/**
 * Reads declared capabilities (raw JSON object). Omits extensions that are not enabled, and tasks, which backends
 * receive only with requests that may become tasks. Throws INVALID_PARAMS if the capabilities are too large or contain
 * duplicate members.
 */
export function readAbilities(raw: Buffer, era: Era, extensions: ExtensionSet): ClientAbilities {
  if (raw.length > maxCapabilitiesBytes) throw invalidCapabilities(`more than ${maxCapabilitiesBytes} bytes`)
  const abilitiesByText = abilitiesBySet.get(extensions) ?? new Map<string, ClientAbilities>()
  abilitiesBySet.set(extensions, abilitiesByText)
  const key = era + raw.toString()
  const cached = abilitiesByText.get(key)
  if (cached) return cached
  const abilities = parseAbilities(raw, extensions, (declared) => extensions.declaredBy(declared, era))
  if (abilitiesByText.size >= maxCachedAbilities) abilitiesByText.clear()
  abilitiesByText.set(key, abilities)
  return abilities
}

/** Reads the capabilities that were stored with a session. They contain only extensions that were enabled. */
export function restoreAbilities(raw: Buffer): ClientAbilities {
  return parseAbilities(raw, everyExtension, (declared) => new Map(declared.object('extensions')?.entries()))
}

/** Returns the abilities of a session's client without the extensions that are no longer enabled. */
export function enabledAbilities(declared: ClientAbilities, extensions: ExtensionSet): ClientAbilities {
  return declared.extensions.size === 0 ? declared : readAbilities(declared.raw, 'session', extensions)
}

/** Like `readAbilities`, but throws a MessageError with the request's id. */
export function abilitiesOf(raw: Buffer, id: string, era: Era, extensions: ExtensionSet): ClientAbilities {
  try {
    return readAbilities(raw, era, extensions)
  } catch (error) {
    if (!(error instanceof GatehouseError)) throw error
    throw new MessageError(error.code, id, { detail: error.message })
  }
}

function parseAbilities(
  raw: Buffer,
  extensions: ExtensionSet,
  selectExtensions: SelectExtensions,
): ClientAbilities {
  try {
    const declared = new JsonObject(raw)
    const selected = selectExtensions(declared)
    const relayed = relayedCapabilities(declared, selected)
    const basic = {
      ...pickProtocolCapabilities(declared),
      ...(selected.size > 0 && {
        extensions: Object.fromEntries([...selected.keys()].map((id) => [id, extensions.plainSettings(id)])),
      }),
    }
    const plainText = canonicalJson(basic)
    const relayedText = canonicalJson(JSON.parse(relayed.toString()))
    const ids = new Set(selected.keys())
    const plain =
      plainText === relayedText ? undefined : withSignature(declared, Buffer.from(plainText), plainText, ids)
    return { ...withSignature(declared, relayed, relayedText, ids), plain }
  } catch (cause) {
    if (cause instanceof JsonError) throw invalidCapabilities('a member that occurs twice')
    throw cause
  }
}

/** Returns the capabilities with the selected extensions and without the tasks of the session era. */
function relayedCapabilities(declared: JsonObject, selected: ReadonlyMap<string, Buffer>): Buffer {
  const offered = declared.raw('extensions')
  const count = declared.object('extensions')?.entries().length ?? 0
  const isUnchanged = offered === undefined || (count === selected.size && count > 0)
  if (isUnchanged && !declared.raw('tasks')) return Buffer.from(declared.bytes)
  const members = [...selected].map(([id, settings]) => `${JSON.stringify(id)}:${settings.toString()}`)
  return declared.with({
    tasks: undefined,
    extensions: members.length > 0 ? `{${members.join(',')}}` : undefined,
  })
}

function withSignature(
  declared: JsonObject,
  raw: Buffer,
  text: string,
  extensions: ReadonlySet<string>,
): ClientAbilities {
  return { ...abilitiesIn(declared), raw, signature: hash('sha256', text, 'base64url'), extensions }
}

function pickProtocolCapabilities(declared: JsonObject): Record<string, Record<string, unknown>> {
  const plain: Record<string, Record<string, unknown>> = {}
  for (const [name, parts] of Object.entries(protocolCapabilities)) {
    const capability = declared.object(name)
    if (!capability) continue
    plain[name] = Object.fromEntries(parts.flatMap((part) => memberEntry(part, capability.raw(part))))
  }
  return plain
}

/** Returns the entry for a declared member. Omits the content of objects, and ignores values other than `true`. */
function memberEntry(name: string, raw: Buffer | undefined): [string, unknown][] {
  if (raw?.[0] === 0x7b) return [[name, {}]]
  return raw?.toString() === 'true' ? [[name, true]] : []
}

function invalidCapabilities(what: string): GatehouseError {
  return new GatehouseError('INVALID_PARAMS', {
    detail: `Invalid params: the declared capabilities contain ${what}`,
  })
}

/**
 * Returns a copy of a client's `Implementation` object. Returns undefined if the value is not an object or is too large
 * to store.
 */
export function readInfo(raw: Buffer | undefined): Buffer | undefined {
  return raw?.[0] === 0x7b && raw.length <= maxInfoBytes ? Buffer.from(raw) : undefined
}

/** True for clients that declare MCP Apps. */
export function rendersApps({ abilities }: OperationClient): boolean {
  return abilities.extensions.has(appsExtensionId)
}

/** Returns JSON with sorted members. Equal values have equal text. */
export function canonicalJson(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`
  const members = Object.entries(value).sort(([a], [b]) => byText(a, b))
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${canonicalJson(member)}`).join(',')}}`
}

/** The allowlist of headers that backends receive, in lowercase. A reload may replace the list. */
export interface HeaderAllowlist {
  readonly passthroughHeaders: readonly string[]
}

/** Returns the request headers on the allowlist. Only the first value of a repeated header is kept. */
export function selectHeaders(
  headers: IncomingHttpHeaders,
  allowed: readonly string[],
): Readonly<Record<string, string>> {
  if (allowed.length === 0) return noHeaders
  const passed: Record<string, string> = {}
  for (const name of allowed) {
    const value = headers[name]
    const first = Array.isArray(value) ? value[0] : value
    if (first !== undefined) passed[name] = first
  }
  return passed
}

const noHeaders: Readonly<Record<string, string>> = {}

/**
 * True for callers without a token. Such callers cannot be distinguished, so a limit for one caller would apply to all
 * of them.
 */
export function isShared({ token }: Caller): boolean {
  return token === undefined
}
