/**
 * Checks the arguments of a call against the approved definition, while the backend offers another one: what was not
 * approved reaches it neither as a new member nor as a new value.
 *
 * An object of the schema that says nothing of further members takes none. Schemas are compiled and evaluated in a worker:
 * that can take longer than one turn of the event loop may.
 */
import { fieldsOf } from '../../../../schemas/index.ts'
import { usableSchema } from '../../../../schemas/workflow/index.ts'
import { atOnce, canonicalText, JsonError, JsonObject } from '../../../mcp/index.ts'
import { closedSchema } from './closed-schema.ts'
import type { ArgumentCheck } from '../../model/catalog/pinning.ts'

const maxBytes = 256 * 1024
const maxValues = 20_000

const noArguments = Buffer.from('{}')

/**
 * Undefined when the approved schema is of a form that cannot be checked here: then the tool cannot be called. Besides the
 * schema without further members the approved one counts too: where branches exclude one another, fewer members can fit
 * more.
 */
export function toolArgumentCheck(definition: Buffer): ArgumentCheck | undefined {
  const { $id: _, ...approved } = fieldsOf(new JsonObject(definition).value('inputSchema'))
  const schema = closedSchema(approved)
  // What is wrong with the approved schema is wrong with this one too.
  if (!schema || !usableSchema(schema)) return undefined
  const schemas = JSON.stringify([approved, schema])
  return async (args = noArguments, match) => {
    const why = unreadable(args)
    return why === undefined ? match(schemas, args) : [why]
  }
}

/** Arguments of a prompt are texts by name. */
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

/** Why arguments are not looked at. A member that stands twice is refused: the backend may read the other one. */
function unreadable(args: Buffer): string | undefined {
  if (args.length > maxBytes) return `they are larger than ${maxBytes} bytes`
  try {
    atOnce(canonicalText(args, { maxValues }))
    return undefined
  } catch (error) {
    if (error instanceof JsonError) return error.message
    throw error
  }
}
