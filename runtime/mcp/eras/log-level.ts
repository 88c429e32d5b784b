/** Levels of log messages. Source: MCP 2025-11-25 and 2026-07-28, server/utilities/logging. */
import { JsonObject } from '../json/object.ts'
import { logLevels } from '../protocol.ts'

/** True when a log message is at least as severe as the level; without a level everything passes. */
export function passesLevel(params: Buffer, level: string | undefined): boolean {
  if (level === undefined) return true
  const own = new JsonObject(params).text('level')
  return own === undefined || logLevels.indexOf(own) >= logLevels.indexOf(level)
}
