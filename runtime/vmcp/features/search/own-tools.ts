/**
 * Describes the two tools that clients see with tool search, and parses these tools' arguments.
 *
 * Field names match case-insensitively. A `tool_name` among the parameters is treated as the tool's name, because
 * models often write it there. Arguments are parsed once, so policies check the same values that are executed.
 * Source: docs/reference/specification/virtual-server.md#endpoints, "Endpoints" (find_tool, call_tool).
 */
import { serverTools, ModuleError } from '../../../../schemas/index.ts'
import { DuplicateMember, emptyObjectBytes, JsonObject, openObject } from '../../../mcp/index.ts'

export const findToolName = serverTools.findTool
export const callToolName = serverTools.callTool

const definitions = [
  {
    name: findToolName,
    description:
      'Finds tools for a task. Many more tools are available than are listed, so search before you try to solve a ' +
      'task, and whenever a step requires a tool that you do not have. Tools are found by meaning (tool_description) ' +
      'and by keyword (tool_keywords), best match first. The response contains each tool with its input schema, and ' +
      'token_metrics: the number of tokens that all tools would use (baseline_tokens), the number that the returned ' +
      'tools use (returned_tokens), and the savings (savings_percent). Run a tool that you found with call_tool.',
    inputSchema: {
      type: 'object',
      properties: {
        tool_description: {
          type: 'string',
          description: 'The task, or what the tool should be able to do, in plain language.',
        },
        tool_keywords: {
          type: 'array',
          items: { type: 'string' },
          description: "Words that are likely to appear in the tool's name or description.",
        },
      },
      required: ['tool_description'],
    },
  },
  {
    name: callToolName,
    description:
      'Runs a tool by name and returns its result. Call find_tool first: it returns the exact names and the ' +
      'parameters that each tool accepts.',
    inputSchema: {
      type: 'object',
      properties: {
        tool_name: { type: 'string', description: 'Name of the tool, exactly as find_tool returned it.' },
        parameters: { type: 'object', description: 'Arguments for the tool, matching its input schema.' },
      },
      required: ['tool_name', 'parameters'],
    },
  },
] as const

/** Raw result of tools/list. */
export const toolList: Buffer = Buffer.from(JSON.stringify({ tools: definitions }))

/** Raw result of tools/list for callers without permission to search. */
export const callOnly: Buffer = Buffer.from(
  JSON.stringify({ tools: definitions.filter(({ name }) => name === callToolName) }),
)

/** Thrown for invalid arguments. The text is for the model. */
export class ArgumentError extends ModuleError {}

export interface FindArguments {
  readonly description: string
  readonly keywords: readonly string[]
}

/** Maximum length of a task description. Longer descriptions provide no more information about the tool. */
const maxTextChars = 8_000
const maxKeywords = 100

/** Reads the arguments of find_tool. Throws ArgumentError for invalid arguments. */
export function readFind(raw: Buffer | undefined): FindArguments {
  const fields = fieldsOf(raw)
  const description = fields.get('tool_description')
  const keywords = fields.get('tool_keywords')
  if (description === undefined) throw new ArgumentError('tool_description is required')
  return {
    description: text(description, 'tool_description').slice(0, maxTextChars),
    keywords: keywords === undefined ? [] : texts(keywords, 'tool_keywords').slice(0, maxKeywords),
  }
}

export interface CallArguments {
  readonly name: string
  /** Parameters as a raw JSON object. */
  readonly parameters: Buffer
}

const maxNameBytes = 1024
const shape = 'expected {"tool_name": "<name>", "parameters": {…}}'

/** Reads the arguments of call_tool. Throws ArgumentError for invalid arguments. */
export function readCall(raw: Buffer | undefined): CallArguments {
  const fields = fieldsOf(raw)
  const parameters = fields.get('parameters') ?? emptyObjectBytes
  if (parameters[0] !== openObject) throw new ArgumentError(`parameters must be an object: ${shape}`)
  const given = fields.get('tool_name')
  if (given && given.length > maxNameBytes)
    throw new ArgumentError(`invalid arguments: tool_name has more than ${maxNameBytes} bytes`)
  const name = given === undefined ? '' : text(given, 'tool_name')
  if (name !== '') return { name, parameters }
  const inner = objectOf(parameters)
  const nested = inner.text('tool_name') ?? ''
  if (nested !== '') return { name: nested, parameters: inner.with({ tool_name: undefined }) }
  const seen = [...fields.keys()].slice(0, 10).map((key) => JSON.stringify(key.slice(0, 64)))
  throw new ArgumentError(`tool_name is required: ${shape}, got ${seen.join(', ') || 'no fields'}`)
}

/** Returns the fields, keyed by lowercase name. A null value is treated as absent. */
function fieldsOf(raw: Buffer | undefined): Map<string, Buffer> {
  if (raw === undefined) return new Map()
  if (raw[0] !== openObject) throw new ArgumentError('invalid arguments: expected an object')
  const fields = objectOf(raw, { ignoreCase: true }).entries()
  return new Map(
    fields.flatMap(([name, value]) =>
      value.length === 4 && value.toString() === 'null' ? [] : [[name.toLowerCase(), value] as const],
    ),
  )
}

function objectOf(raw: Buffer, { ignoreCase = false }: { readonly ignoreCase?: boolean } = {}): JsonObject {
  try {
    return new JsonObject(raw, { ignoreCase })
  } catch (error) {
    if (error instanceof DuplicateMember) throw new ArgumentError('invalid arguments: duplicate field')
    throw error
  }
}

function text(raw: Buffer, name: string): string {
  const value: unknown = JSON.parse(raw.toString())
  if (typeof value !== 'string') throw new ArgumentError(`invalid arguments: ${name} must be a string`)
  return value
}

/** Reads a list of strings. Accepts a single string as well. */
function texts(raw: Buffer, name: string): string[] {
  const value: unknown = JSON.parse(raw.toString())
  if (typeof value === 'string') return [value.slice(0, maxTextChars)]
  if (!Array.isArray(value) || !value.every((item): item is string => typeof item === 'string'))
    throw new ArgumentError(`invalid arguments: ${name} must be a list of strings`)
  return value
}
