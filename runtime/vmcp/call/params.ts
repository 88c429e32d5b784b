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

/** Returns the prompt or resource that a completion request names. Throws INVALID_PARAMS. */
export function requireRef(params: JsonObject): {
  readonly ref: JsonObject
  readonly type: 'ref/prompt' | 'ref/resource'
  readonly name: string
} {
  const ref = params.object('ref')
  const type = ref?.text('type')
  const name = ref?.text(type === 'ref/prompt' ? 'name' : 'uri')
  if (ref && name !== undefined && (type === 'ref/prompt' || type === 'ref/resource'))
    return { ref, type, name }
  throw new GatehouseError('INVALID_PARAMS', {
    detail: 'Invalid params: ref must name a prompt or a resource',
  })
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
