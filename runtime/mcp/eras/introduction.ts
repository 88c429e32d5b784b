/**
 * Reads and writes the messages in which clients and servers exchange their identities and capabilities. The session
 * era uses `initialize`. The stateless era uses request metadata and `server/discover`.
 * Source: MCP 2025-11-25, lifecycle; MCP 2026-07-28, basic "_meta", versioning.
 */
import { GatehouseError } from '../../../schemas/index.ts'
import { emptyObject, JsonObject } from '../json/object.ts'
import { latestSessionVersion, metaKey, rpcCode, sessionVersions, statelessVersion } from '../protocol.ts'

/** Maximum size of an `initialize` or `server/discover` result. The result is read in one event loop turn. */
const maxIntroductionBytes = 1024 * 1024
/** Raw `Implementation` object for a server without a name. */
export const unnamed = '{"name":"unnamed","version":"0"}'

/** The capabilities, information and instructions of a session-era server, as raw JSON. */
export interface SessionServer {
  readonly capabilities: JsonObject
  readonly info: string
  readonly instructions: string | undefined
}

/** Returns the raw params for Gatehouse's own `initialize` request. */
export function initializeParams(capabilities: Buffer, info: string): string {
  return `{"protocolVersion":"${latestSessionVersion}","capabilities":${capabilities.toString()},"clientInfo":${info}}`
}

/** Returns the raw `_meta` for Gatehouse's own stateless requests. */
export function requestMeta(info: string, capabilities: Buffer = emptyObject.bytes): string {
  return `{"${metaKey.protocolVersion}":"${statelessVersion}","${metaKey.clientInfo}":${info},"${metaKey.clientCapabilities}":${capabilities.toString()}}`
}

/** Returns the revision for the response to an `initialize` that requests the revision `requested`. */
export function sessionVersionFor(requested: string): string {
  return sessionVersions.includes(requested) ? requested : latestSessionVersion
}

/** True for an InitializeResult that contains a protocol version of the session era. Never throws. */
export function opensSession(result: Buffer | undefined): boolean {
  const version = result && memberOf(result, 'protocolVersion')
  return typeof version === 'string' && sessionVersions.includes(version)
}

/** Reads an InitializeResult. Throws BACKEND_PROTOCOL if the result does not open a usable session. */
export function sessionServer(raw: Buffer | undefined): SessionServer {
  const detail = 'the server did not open a session'
  if (!raw || !opensSession(raw)) throw new GatehouseError('BACKEND_PROTOCOL', { detail })
  try {
    const result = new JsonObject(raw)
    return {
      capabilities: result.object('capabilities') ?? emptyObject,
      info: result.object('serverInfo')?.bytes.toString() ?? unnamed,
      instructions: result.raw('instructions')?.toString(),
    }
  } catch (cause) {
    throw new GatehouseError('BACKEND_PROTOCOL', { detail, cause })
  }
}

/** True for a DiscoverResult that contains the stateless revision. Never throws. */
export function declaresStateless(result: Buffer): boolean {
  return namesStateless(memberOf(result, 'supportedVersions'))
}

/**
 * Returns a member of an InitializeResult or DiscoverResult. Returns undefined if the result is too large or
 * unreadable.
 */
function memberOf(introduction: Buffer, name: string): unknown {
  if (introduction.length > maxIntroductionBytes) return undefined
  try {
    return new JsonObject(introduction).value(name)
  } catch {
    return undefined
  }
}

function namesStateless(versions: unknown): boolean {
  return Array.isArray(versions) && versions.includes(statelessVersion)
}

/** HTTP statuses that session-era servers use to reject stateless requests. */
export const foreignStatuses: ReadonlySet<unknown> = new Set([400, 404, 405, 406])

/**
 * Determines a server's era from its error response to a stateless request. Returns undefined if the error is possible
 * in both eras.
 */
export function eraOfError(error: JsonObject): 'session' | 'stateless' | undefined {
  const code = error.value('code')
  if (code === rpcCode.headerMismatch || code === rpcCode.capabilityRequired) return 'stateless'
  if (code !== rpcCode.versionUnsupported) return undefined
  return namesStateless(error.object('data')?.value('supported')) ? 'stateless' : 'session'
}
