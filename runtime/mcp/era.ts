/**
 * Determines a request's protocol era, and checks the requirements of the stateless era.
 *
 * The stateless rules follow MCP 2026-07-28 (basic "_meta", streamable HTTP "Server Validation") in the form that the
 * public conformance suite tests. A missing member of `_meta` results in error -32602, a header that differs from the
 * body results in -32020, and an unsupported revision results in -32022. The HTTP status is always 400.
 */
import { own } from '../../schemas/index.ts'
import type { IncomingHttpHeaders } from 'node:http'
import type { JsonObject } from './json/object.ts'
import { type Message, MessageError, whyUnread } from './message.ts'
import { readHeaderValue } from './mirrored-headers.ts'
import { headerName, metaKey, statelessVersion } from './protocol.ts'

export type Era = 'session' | 'stateless'

/** Params members that the `Mcp-Name` header mirrors, keyed by method. */
export const namedMethods: Readonly<Record<string, 'name' | 'uri' | 'taskId'>> = {
  'tools/call': 'name',
  'prompts/get': 'name',
  'resources/read': 'uri',
  'tasks/get': 'taskId',
  'tasks/update': 'taskId',
  'tasks/cancel': 'taskId',
}

/**
 * Returns the `_meta` object of params, or undefined if there is none. Throws MessageError INVALID_PARAMS if a member
 * occurs twice.
 */
export function metaOf(message: Message, params: JsonObject): JsonObject | undefined {
  try {
    return params.object('_meta')
  } catch (cause) {
    const detail = `Invalid params: _meta: ${whyUnread(cause) ?? 'the object cannot be read'}`
    throw new MessageError('INVALID_PARAMS', message.id, { detail, cause })
  }
}

/**
 * Determines a request's era, first from its metadata, then from the version header. `initialize` without stateless-era
 * metadata always opens a session. Throws the same errors as metaOf.
 */
export function eraOf(message: Message, params: JsonObject, versionHeader: string | undefined): Era {
  const meta = params.raw('_meta') && metaOf(message, params)
  if (meta?.raw(metaKey.protocolVersion)) return 'stateless'
  if (message.method === 'initialize') return 'session'
  if (versionHeader !== undefined) return versionHeader === statelessVersion ? 'stateless' : 'session'
  return meta?.raw(metaKey.clientInfo) || meta?.raw(metaKey.clientCapabilities) ? 'stateless' : 'session'
}

/** Metadata about the sender of a stateless request. */
export interface StatelessMeta {
  readonly protocolVersion: string
  /** The client's capabilities as a raw JSON object. */
  readonly clientCapabilities: Buffer
  readonly clientInfo: Buffer | undefined
  readonly logLevel: string | undefined
}

/**
 * Checks a stateless request against its headers, in the specification's order. Throws MessageError INVALID_PARAMS,
 * HEADER_MISMATCH or VERSION_UNSUPPORTED.
 */
export function checkStateless(
  message: Message,
  params: JsonObject,
  headers: IncomingHttpHeaders,
  supported: readonly string[],
): StatelessMeta {
  const { protocolVersion } = versionIn(message, params)
  const header = single(headers[headerName.protocolVersion])
  if (header !== protocolVersion) {
    throw new MessageError('HEADER_MISMATCH', message.id, {
      detail: 'Header mismatch: MCP-Protocol-Version does not match the request',
      data: { header: header ?? '', body: protocolVersion },
    })
  }
  const meta = checkStatelessBody(message, params, supported)
  checkMirrored(message, params, headers)
  return meta
}

/**
 * Like `checkStateless`, but for stdio, which has no headers. Throws MessageError INVALID_PARAMS or
 * VERSION_UNSUPPORTED.
 */
export function checkStatelessBody(
  message: Message,
  params: JsonObject,
  supported: readonly string[],
): StatelessMeta {
  const { meta, protocolVersion } = versionIn(message, params)
  if (protocolVersion !== statelessVersion) {
    throw new MessageError('VERSION_UNSUPPORTED', message.id, {
      data: { supported, requested: protocolVersion },
    })
  }
  const clientCapabilities = meta.raw(metaKey.clientCapabilities)
  if (clientCapabilities?.[0] !== 0x7b) throw missingMember(message, metaKey.clientCapabilities)
  return {
    protocolVersion,
    clientCapabilities,
    clientInfo: meta.raw(metaKey.clientInfo),
    logLevel: meta.text(metaKey.logLevel),
  }
}

function versionIn(message: Message, params: JsonObject): { meta: JsonObject; protocolVersion: string } {
  const meta = metaOf(message, params)
  const protocolVersion = meta?.text(metaKey.protocolVersion)
  if (meta === undefined || protocolVersion === undefined)
    throw missingMember(message, metaKey.protocolVersion)
  return { meta, protocolVersion }
}

function missingMember(message: Message, key: string): MessageError {
  return new MessageError('INVALID_PARAMS', message.id, {
    detail: `Invalid params: _meta must contain ${key}`,
  })
}

/** Checks that `Mcp-Method` and `Mcp-Name` match the body. */
function checkMirrored(message: Message, params: JsonObject, headers: IncomingHttpHeaders): void {
  compareHeader(message, 'Mcp-Method', single(headers[headerName.method]), message.method)
  const member = own(namedMethods, message.method)
  if (member === undefined) return
  const bodyValue = params.text(member)
  if (bodyValue === undefined) {
    throw new MessageError('INVALID_PARAMS', message.id, {
      detail: `Invalid params: ${member} must be a string`,
    })
  }
  const raw = single(headers[headerName.name])
  compareHeader(message, 'Mcp-Name', raw === undefined ? undefined : readHeaderValue(raw), bodyValue)
}

function compareHeader(
  message: Message,
  header: string,
  headerValue: string | undefined,
  bodyValue: string,
): void {
  if (headerValue === bodyValue) return
  throw new MessageError('HEADER_MISMATCH', message.id, {
    detail: `Header mismatch: ${header} does not match the request`,
    data: { header, headerValue: headerValue ?? '', bodyValue },
  })
}

/**
 * Returns the value of a header. Returns undefined if the header is absent or repeated, because repeated values cannot
 * be compared.
 */
export function single(value: string | string[] | undefined): string | undefined {
  return typeof value === 'string' ? value : undefined
}
