/**
 * Settings of a session: the log level and the watched resources.
 * Source: MCP 2025-11-25, server/utilities/logging, server/resources.
 */
import { GatehouseError } from '../../../schemas/index.ts'
import { JsonObject } from '../json/object.ts'
import { logLevels } from '../protocol.ts'

/**
 * True if a log message is at least as severe as the level. If no level is set, every message passes. Throws JsonError
 * if the params contain a duplicate member. Otherwise, the client could read a different level.
 */
export function passesLevel(params: Buffer, level: string | undefined): boolean {
  const own = new JsonObject(params, { ignoreCase: true }).text('level')
  return level === undefined || own === undefined || logLevels.indexOf(own) >= logLevels.indexOf(level)
}

/** Reads the params of `logging/setLevel`. Throws INVALID_PARAMS for an unknown level. */
export function levelIn(params: JsonObject): string {
  const level = params.text('level')
  if (level !== undefined && logLevels.includes(level)) return level
  throw invalidParams(`level must be one of ${logLevels.join(', ')}`)
}

/**
 * Reads the params of `resources/subscribe` and `resources/unsubscribe`. Throws INVALID_PARAMS if the URI is not a
 * string.
 */
export function uriIn(params: JsonObject): string {
  const uri = params.text('uri')
  if (uri === undefined) throw invalidParams('uri must be a string')
  return uri
}

export function invalidParams(why: string): GatehouseError {
  return new GatehouseError('INVALID_PARAMS', { detail: `Invalid params: ${why}` })
}
