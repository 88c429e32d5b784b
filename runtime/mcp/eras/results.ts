/**
 * Stateless results contain the type, the server, and cache control in addition to their content. These members are
 * added for stateless clients and removed for session clients.
 *
 * All results are marked private, regardless of the server's value, because each caller may see different data.
 * Source: MCP 2026-07-28, basic ("Per-response protocol fields"), server/utilities/caching.
 */
import { type Changes, JsonObject } from '../json/object.ts'
import { readMembers } from '../json/read.ts'
import { atOnce, joined, largeBytes, type TurnWork } from '../json/turns.ts'
import { metaKey, rpcCode } from '../protocol.ts'
import { withoutReservedMetaInTurns } from './reserved-meta.ts'
import { withStructuredObject } from './structured.ts'

const cacheable: ReadonlySet<string> = new Set([
  'server/discover',
  'tools/list',
  'prompts/list',
  'resources/list',
  'resources/templates/list',
  'resources/read',
  'skills/list',
  'skills/get',
  'resources/directory/read',
])

/** Gatehouse itself watches and refreshes lists. A client with a cached list would not notice removed entries. */
const ownTtlMs = 0

/** Returns a complete result for stateless clients. `serverInfo` is raw JSON. */
export function completeResult(method: string, result: Buffer, serverInfo: string): Buffer {
  const object = new JsonObject(result)
  return object.with(completionChanges(method, object, serverInfo))
}

/** Like `completeResult`, but works in slices. */
export function* completeResultInTurns(method: string, result: Buffer, serverInfo: string): TurnWork<Buffer> {
  yield* readMembers(result)
  const object = new JsonObject(result)
  return yield* joined(object.parts(completionChanges(method, object, serverInfo)))
}

/** Returns a stateless result with the server's information, for results other than complete results. */
export function withServerInfo(result: Buffer, serverInfo: string): Buffer {
  const object = new JsonObject(result)
  return object.with({ _meta: metaWith(object, serverInfo) })
}

function metaWith(object: JsonObject, serverInfo: string): Buffer | string {
  const meta = object.object('_meta')
  return meta ? meta.with({ [metaKey.serverInfo]: serverInfo }) : `{"${metaKey.serverInfo}":${serverInfo}}`
}

function completionChanges(method: string, object: JsonObject, serverInfo: string): Changes {
  const changes: Record<string, Buffer | string> = {
    resultType: '"complete"',
    _meta: metaWith(object, serverInfo),
  }
  if (cacheable.has(method)) {
    const ttl = object.raw('ttlMs')?.toString() ?? ''
    changes['ttlMs'] = /^\d{1,15}$/.test(ttl) ? ttl : String(ownTtlMs)
    changes['cacheScope'] = '"private"'
  }
  return changes
}

/**
 * Maximum size, in bytes of JSON text, of a backend's `requestState` that is forwarded to a client. Sealing makes the
 * state one third larger.
 */
export const maxBackendStateBytes: number = 192 * 1024

/** Returns an interim result with the input requests and with the state that the client must return. */
export function inputRequired(
  requests: Buffer | undefined,
  state: string | undefined,
  serverInfo: string,
): Buffer {
  const members = [
    '"resultType":"input_required"',
    ...(requests ? [`"inputRequests":${requests.toString()}`] : []),
    ...(state === undefined ? [] : [`"requestState":${JSON.stringify(state)}`]),
    `"_meta":{"${metaKey.serverInfo}":${serverInfo}}`,
  ]
  return Buffer.from(`{${members.join(',')}}`)
}

const badRequests: ReadonlySet<unknown> = new Set([
  rpcCode.invalidParams,
  rpcCode.headerMismatch,
  rpcCode.capabilityRequired,
  rpcCode.versionUnsupported,
])

/** Returns the HTTP status for a JSON-RPC error in response to a stateless request. */
export function statusOf(code: unknown): number {
  if (code === rpcCode.methodNotFound) return 404
  if (badRequests.has(code)) return 400
  return code === 403 ? 403 : 200
}

/** Members that exist only in stateless results. */
const statelessMembers: readonly string[] = ['resultType', 'ttlMs', 'cacheScope']

/**
 * Translates a result for session-era clients. Removes stateless-era members and reserved `_meta` keys, and makes
 * structured content an object. Returns the same buffer if nothing changes. Throws JsonError if a relevant member
 * occurs twice.
 */
export function sessionResult(raw: Buffer): Buffer {
  return isSessionResult(raw) ? raw : atOnce(sessionResultInTurns(raw))
}

/**
 * Strings that indicate that a result may need a change. A result without these strings needs no change. An escape can
 * encode any of the other strings.
 */
const indicators: readonly string[] = [
  '\\u',
  'io.modelcontextprotocol',
  '"structuredContent"',
  ...statelessMembers.map((name) => `"${name}"`),
]

/** True if a result needs no change. This check does not parse the result. */
function isSessionResult(raw: Buffer): boolean {
  return raw.length < largeBytes && !indicators.some((indicator) => raw.includes(indicator))
}

/** Like `sessionResult`, but works in slices. */
export function* sessionResultInTurns(raw: Buffer): TurnWork<Buffer> {
  const own = yield* withoutReservedMetaInTurns(yield* withoutStatelessMembers(raw))
  return yield* withStructuredObject(own)
}

function* withoutStatelessMembers(raw: Buffer): TurnWork<Buffer> {
  if (raw.length < largeBytes && !mayHaveStatelessMembers(raw)) return raw
  yield* readMembers(raw)
  const result = new JsonObject(raw)
  const present = statelessMembers.filter((name) => result.raw(name))
  if (present.length === 0) return raw
  return yield* joined(result.parts(Object.fromEntries(present.map((name) => [name, undefined]))))
}

function mayHaveStatelessMembers(raw: Buffer): boolean {
  return raw.includes('\\u') || statelessMembers.some((name) => raw.includes(`"${name}"`))
}
