/**
 * Checks the arguments of a call against the approved definition, while the backend offers another one: what was not
 * approved reaches it neither as a new member nor as a new value.
 *
 * An object of the schema that says nothing of further members takes none. Bounded in time for any arguments: patterns
 * are matched in linear time, and the work is counted.
 */
import { fieldsOf, type Fields } from '../../../../schemas/index.ts'
import { usableSchema, type SchemaCheck, schemaCheck } from '../../../../schemas/workflow/index.ts'
import { atOnce, canonicalText, JsonError, JsonObject } from '../../../mcp/index.ts'
import { closedSchema } from './closed-schema.ts'
import type { ArgumentCheck } from './parts.ts'

const maxBytes = 256 * 1024
const maxValues = 20_000
/** Some 20 ms. */
const maxUnits = 200_000

const noArguments = Buffer.from('{}')

/**
 * Undefined when the approved schema is of a form that cannot be checked here: then the tool cannot be called. It is compiled
 * with the first call. Besides the schema without further members the approved one counts too: where branches exclude one
 * another, fewer members can fit more.
 */
export function toolArgumentCheck(definition: Buffer): ArgumentCheck | undefined {
  const { $id: _, ...approved } = fieldsOf(new JsonObject(definition).value('inputSchema'))
  const schema = closedSchema(approved)
  if (!schema || !usableSchema(approved) || !usableSchema(schema)) return undefined
  return (args = noArguments) => {
    const value = valueOf(args)
    if (!value.ok) return [value.why]
    let left = maxUnits
    const spend = (units: number): void => {
      left -= units
      if (left < 0) throw tooMuch
    }
    try {
      const violations = checkOf(approved).violations(value.value, spend)
      return violations.length > 0 ? violations : checkOf(schema).violations(value.value, spend)
    } catch (error) {
      if (error === tooMuch) return ['they take too long to be checked']
      if (error === notCompiled) return ['they cannot be checked against the approved definition']
      throw error
    }
  }
}

function checkOf(schema: Fields): SchemaCheck {
  const check = schemaCheck(schema)
  try {
    check.compile()
  } catch {
    throw notCompiled
  }
  return check
}

const notCompiled = new Error('the schema cannot be compiled')

/** Ends a check. */
const tooMuch = new Error('too much work')

/** Arguments of a prompt are texts by name. */
export function promptArgumentCheck(definition: Buffer): ArgumentCheck {
  const approved = new JsonObject(definition).value('arguments')
  const names = new Set((Array.isArray(approved) ? approved : []).map((one) => fieldsOf(one)['name']))
  return (args = noArguments) => {
    const value = valueOf(args)
    if (!value.ok) return [value.why]
    const unknown = Object.keys(fieldsOf(value.value)).filter((name) => !names.has(name))
    return unknown.slice(0, 10).map((name) => `${JSON.stringify(name.slice(0, 80))} is not an argument`)
  }
}

type Read = { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly why: string }

/** A member that stands twice is refused: the backend may read the other one. */
function valueOf(args: Buffer): Read {
  if (args.length > maxBytes) return { ok: false, why: `they are larger than ${maxBytes} bytes` }
  try {
    atOnce(canonicalText(args, { maxValues }))
    return { ok: true, value: JSON.parse(args.toString()) }
  } catch (error) {
    if (error instanceof JsonError) return { ok: false, why: error.message }
    throw error
  }
}
