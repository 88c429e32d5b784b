/**
 * Parses the arguments for a tool or prompt: JSON (`--args`, `--args-file`, `-` for standard input) and the pairs
 * `name=value` and `name:=JSON`. Pairs override JSON. JSON is forwarded unchanged, so that large integers keep their
 * precision.
 */
import { readFileSync } from 'node:fs'
import { acceptedTypes, invalidConfig, isOfType, type SchemaType } from '../../../schemas/index.ts'
import { systemReason } from '../../config/index.ts'
import { standardInput } from '../../toolkit/terminal/input.ts'
import { DuplicateMember, JsonError, JsonObject } from '../../mcp/index.ts'

export interface ArgumentFlags {
  /** The JSON text, or `-` for standard input. */
  readonly args?: string
  readonly argsFile?: string
}

const pairForm = 'must be name=value, or name:=JSON'

/**
 * `schema` returns the input schema of a tool, for values that are not strings. `schema` is called only when there are
 * pairs.
 */
export async function argumentsFrom(
  pairs: readonly string[],
  flags: ArgumentFlags,
  schema: () => Promise<unknown>,
): Promise<JsonObject> {
  const base = jsonArguments(flags)
  const split = pairs.map(splitPair)
  const isTyped = split.some(({ isJson }) => !isJson)
  const inputSchema = isTyped ? await schema() : undefined
  const changes: Record<string, string> = Object.create(null) as Record<string, string>
  for (const { name, text, isJson } of split) {
    if (Object.hasOwn(changes, name)) throw invalidConfig(`${name}: occurs twice`)
    changes[name] = isJson
      ? checkedJson(name, text)
      : typedValue(name, text, acceptedTypes(inputSchema, [name]))
  }
  return new JsonObject(base.with(changes))
}

function jsonArguments({ args, argsFile }: ArgumentFlags): JsonObject {
  if (args !== undefined && argsFile !== undefined)
    throw invalidConfig('--args and --args-file cannot be combined')
  if (argsFile !== undefined) return parseObject('--args-file', read('--args-file', argsFile))
  if (args === '-') return parseObject('--args -', read('--args', '-'))
  return args === undefined ? new JsonObject(Buffer.from('{}')) : parseObject('--args', Buffer.from(args))
}

function read(flag: string, path: string): Buffer {
  try {
    return path === '-' ? standardInput(flag) : readFileSync(path)
  } catch (error) {
    throw invalidConfig(`${flag}: cannot read ${path}: ${systemReason(error)}`)
  }
}

function parseObject(flag: string, bytes: Buffer): JsonObject {
  try {
    const object = new JsonObject(bytes)
    // JsonObject only scans members; this call validates their values.
    JSON.parse(bytes.toString())
    return object
  } catch (error) {
    if (error instanceof DuplicateMember) throw invalidConfig(`${flag}: a member occurs twice`)
    if (!(error instanceof JsonError) && !(error instanceof SyntaxError)) throw error
    throw invalidConfig(`${flag}: must be a JSON object such as {"name":"value"}`)
  }
}

interface Pair {
  readonly name: string
  readonly text: string
  readonly isJson: boolean
}

function splitPair(text: string): Pair {
  const at = text.indexOf('=')
  if (at < 1) throw invalidConfig(`${shortened(text)}: ${pairForm}`)
  const isJson = text[at - 1] === ':'
  const name = text.slice(0, isJson ? at - 1 : at)
  if (name === '') throw invalidConfig(`${shortened(text)}: ${pairForm}`)
  return { name, text: text.slice(at + 1), isJson }
}

function shortened(text: string): string {
  return JSON.stringify(text.length > 40 ? `${text.slice(0, 39)}…` : text)
}

function checkedJson(name: string, text: string): string {
  try {
    JSON.parse(text)
    return text
  } catch {
    throw invalidConfig(
      `${name}: the value after := must be JSON, such as ${name}:=42 or ${name}:='["a","b"]'`,
    )
  }
}

/**
 * Returns the JSON text of a value: a string when the schema accepts strings or does not restrict the type. Otherwise,
 * the text must be JSON of a type that the schema accepts.
 */
function typedValue(name: string, text: string, types: readonly SchemaType[]): string {
  if (types.length === 0 || types.includes('string')) return JSON.stringify(text)
  try {
    const value: unknown = JSON.parse(text)
    if (types.some((type) => isOfType(value, type))) return text
  } catch {
    // The code below reports the error.
  }
  throw invalidConfig(`${name}: must be ${types.join(' or ')}, as the tool’s schema requires`)
}
