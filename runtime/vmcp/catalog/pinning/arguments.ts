/**
 * Checks a call's arguments against the approved definition while the backend offers a different definition. Only
 * approved members and values reach the backend.
 *
 * An object accepts no additional members unless its schema mentions them. A worker compiles and evaluates the schemas,
 * because this work may take longer than one turn of the event loop.
 */
import { fieldsOf } from '../../../../schemas/index.ts'
import { usableSchema } from '../../../../schemas/workflow/index.ts'
import { atOnce, canonicalText, JsonError, JsonObject } from '../../../mcp/index.ts'
import { closeSchema } from './closed-schema.ts'
import type { ArgumentCheck } from '../../model/catalog/pinning.ts'

const maxBytes = 256 * 1024
const maxValues = 20_000

const noArguments = Buffer.from('{}')

/**
 * Returns the check for a tool's arguments. Returns undefined if the approved schema is not supported. Clients then
 * cannot call the tool. Arguments must match both the closed schema and the approved schema. The second check is needed
 * because, with mutually exclusive branches, fewer members can match more branches.
 */
export function toolArgumentCheck(definition: Buffer): ArgumentCheck | undefined {
  const { $id: _, ...approved } = fieldsOf(new JsonObject(definition).value('inputSchema'))
  const schema = closeSchema(approved)
  // If the approved schema is invalid, the closed schema is invalid too.
  if (!schema || !usableSchema(schema)) return undefined
  const schemas = JSON.stringify([approved, schema])
  return async (args = noArguments, match) => {
    const why = unreadable(args)
    return why === undefined ? match(schemas, args) : [why]
  }
}

/** Returns the check for a prompt's arguments. Prompt arguments are strings, keyed by name. */
export function promptArgumentCheck(definition: Buffer): ArgumentCheck {
  const approved = new JsonObject(definition).value('arguments')
  const names = new Set((Array.isArray(approved) ? approved : []).map((one) => fieldsOf(one)['name']))
  return async (args = noArguments) => {
    const why = unreadable(args)
    if (why !== undefined) return [why]
    const unknown = Object.keys(fieldsOf(JSON.parse(args.toString()))).filter((name) => !names.has(name))
    return unknown.slice(0, 10).map((name) => `${JSON.stringify(name.slice(0, 80))} is not an argument`)
  }
}

/**
 * Returns the reason why arguments cannot be checked. Rejects duplicate members, because Gatehouse and the backend may
 * use the values of different duplicates.
 */
function unreadable(args: Buffer): string | undefined {
  if (args.length > maxBytes) return `the arguments are larger than ${maxBytes} bytes`
  try {
    atOnce(canonicalText(args, { maxValues }))
    return undefined
  } catch (error) {
    if (error instanceof JsonError) return error.message
    throw error
  }
}
