/** Reads members of the params that identify an operation's target. */
import { GatehouseError } from '../../../schemas/index.ts'
import type { JsonObject } from '../../mcp/index.ts'

/** Returns a string member of the params. Throws INVALID_PARAMS if the member is missing or has another type. */
export function requireText(params: JsonObject, member: string): string {
  const value = params.text(member)
  if (value === undefined)
    throw new GatehouseError('INVALID_PARAMS', { detail: `Invalid params: ${member} must be a string` })
  return value
}
