/** Checks the request headers that mirror arguments of a tool call. */
import type { IncomingHttpHeaders } from 'node:http'
import { GatehouseError } from '../../../schemas/index.ts'
import { disagreeingArgument, type JsonObject } from '../../mcp/index.ts'
import type { ToolEntry } from '../model/catalog/entries.ts'

/** Throws HEADER_MISMATCH. */
export function requireMirrored(
  { mirrored }: ToolEntry,
  params: JsonObject,
  headers: IncomingHttpHeaders,
): void {
  if (mirrored.length === 0) return
  const header = disagreeingArgument(mirrored, params, headers)
  if (header === undefined) return
  throw new GatehouseError('HEADER_MISMATCH', {
    detail: `Header mismatch: Mcp-Param-${header} does not match the request`,
    data: { header: `Mcp-Param-${header}` },
  })
}
