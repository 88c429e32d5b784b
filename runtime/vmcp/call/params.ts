/** Reads the params that identify an operation's target, and compares them with the request headers. */
import type { IncomingHttpHeaders } from 'node:http'
import { GatehouseError } from '../../../schemas/index.ts'
import { mismatchedHeader, type JsonObject } from '../../mcp/index.ts'
import type { ToolEntry } from '../model/catalog/entries.ts'

/** Returns a string member of the params. Throws INVALID_PARAMS if the member is missing or has another type. */
export function requireText(params: JsonObject, member: string): string {
  const value = params.text(member)
  if (value === undefined) throw notText(member)
  return value
}

export function notText(member: string): GatehouseError {
  return new GatehouseError('INVALID_PARAMS', { detail: `Invalid params: ${member} must be a string` })
}

/** Checks the request headers that mirror a tool call's arguments. Throws HEADER_MISMATCH. */
export function requireMirrored(
  { mirrored }: ToolEntry,
  params: JsonObject,
  headers: IncomingHttpHeaders,
): void {
  if (mirrored.length === 0) return
  const header = mismatchedHeader(mirrored, params, headers)
  if (header === undefined) return
  throw new GatehouseError('HEADER_MISMATCH', {
    detail: `Header mismatch: Mcp-Param-${header} does not match the request`,
    data: { header: `Mcp-Param-${header}` },
  })
}
