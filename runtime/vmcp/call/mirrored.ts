/** Headers that mirror arguments of a tool call: those of a client are checked, and a backend may refuse ours. */
import type { IncomingHttpHeaders } from 'node:http'
import { GatehouseError } from '../../../schemas/index.ts'
import { disagreeingArgument, JsonObject, rpcCode } from '../../mcp/index.ts'
import type { ToolEntry } from '../model/catalog/entries.ts'
import type { Outcome } from '../model/operation.ts'

/** The backend says that the headers do not fit the arguments. */
export function isHeaderMismatch(outcome: Outcome): boolean {
  return (
    outcome.kind === 'error' &&
    outcome.error.includes(String(rpcCode.headerMismatch)) &&
    new JsonObject(outcome.error).value('code') === rpcCode.headerMismatch
  )
}

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
