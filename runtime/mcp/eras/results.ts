/**
 * What stateless results carry beside their content: their type, who answers, and how long they may be cached. It is put
 * in for stateless clients and taken out for session clients.
 *
 * Everything is marked private: what one caller may see is nobody else's business, whatever a server says.
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
])

/** Lists are watched and renewed here; a client that keeps them would miss what it may see no more. */
const ownTtlMs = 0

/** A complete result in stateless dress. `serverInfo` is raw JSON. */
export function completeResult(method: string, result: Buffer, serverInfo: string): Buffer {
  const object = new JsonObject(result)
  return object.with(completing(method, object, serverInfo))
}

/** As completeResult. */
export function* completeResultInTurns(method: string, result: Buffer, serverInfo: string): TurnWork<Buffer> {
  yield* readMembers(result)
  const object = new JsonObject(result)
  return yield* joined(object.parts(completing(method, object, serverInfo)))
}

function completing(method: string, object: JsonObject, serverInfo: string): Changes {
  const meta = object.object('_meta')
  const changes: Record<string, Buffer | string> = {
    resultType: '"complete"',
    _meta: meta ? meta.with({ [metaKey.serverInfo]: serverInfo }) : `{"${metaKey.serverInfo}":${serverInfo}}`,
  }
  if (cacheable.has(method)) {
    const ttl = object.raw('ttlMs')?.toString() ?? ''
    changes['ttlMs'] = /^\d{1,15}$/.test(ttl) ? ttl : String(ownTtlMs)
    changes['cacheScope'] = '"private"'
  }
  return changes
}

/**
 * Maximum size of a backend's `requestState` that is passed on to a client, in bytes of JSON text. Sealing for the
 * client adds a third.
 */
export const maxBackendStateBytes: number = 192 * 1024

/** An interim result: what is asked, and the state to bring back. */
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

/** HTTP status for a JSON-RPC error of a stateless request. */
export function statusOf(code: unknown): number {
  if (code === rpcCode.methodNotFound) return 404
  if (badRequests.has(code)) return 400
  return code === 403 ? 403 : 200
}

/** Members that only stateless results have. */
const statelessMembers: readonly string[] = ['resultType', 'ttlMs', 'cacheScope']

/**
 * A result as clients of the session era know it: without the members of the other era, without what a server says to
 * its own client alone, structured content as an object. Answers the same buffer when nothing is to be changed. Throws
 * JsonError when a member that matters stands there twice.
 */
export function sessionResult(raw: Buffer): Buffer {
  return isOfSession(raw) ? raw : atOnce(sessionResultInTurns(raw))
}

/** What a result contains where something may have to be changed; an escape may write any of the others. */
const marks: readonly string[] = [
  '\\u',
  'io.modelcontextprotocol',
  '"structuredContent"',
  ...statelessMembers.map((name) => `"${name}"`),
]

/** True when nothing in a result can need a change, which is found without taking it apart. */
function isOfSession(raw: Buffer): boolean {
  return raw.length < largeBytes && !marks.some((mark) => raw.includes(mark))
}

/** As sessionResult. */
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
