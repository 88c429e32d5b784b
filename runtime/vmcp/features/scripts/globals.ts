/**
 * The globals of a script: one function for each tool, `call_tool`, `parallel`, and the caller's data. This module runs
 * in the worker.
 * Source: docs/reference/specification/virtual-server.md#endpoints, "Endpoints" (execute_tool_script).
 */
import {
  Builtin,
  type NativeCall,
  decode,
  Dict,
  elementsOf,
  encode,
  isCallable,
  JsonTextError,
  List,
  type ScriptMeter,
  positional,
  readJson,
  StarlarkError,
  universalNames,
  type StarlarkValue,
  type ScriptWork,
  writeJson,
} from '../../../expr/starlark/index.ts'
import {
  type ToolBinding,
  type ScriptTool,
  maxArgumentBytes,
  maxName,
  type ToolResponse,
} from './messages.ts'

/** Calls a tool outside the worker. `settle` is called once. */
export type CallScriptTool = (
  tool: string,
  args: Uint8Array,
  settle: (response: ToolResponse) => void,
) => void

const fixedGlobals = ['call_tool', 'parallel'] as const

/** Makes the globals. Throws StarlarkError if the data cannot be used. */
export function makeGlobals(
  binding: ToolBinding,
  data: Uint8Array | undefined,
  callTool: CallScriptTool,
  meter: ScriptMeter,
): Map<string, StarlarkValue> {
  const globals = new Map<string, StarlarkValue>()
  const byName = new Map(binding.tools.map((tool) => [tool.name, tool]))
  for (const [name, index] of binding.functions) {
    const tool = binding.tools[index]
    if (tool) globals.set(name, new Builtin(name, (call) => callBound(call, tool, call.args, callTool)))
  }
  for (const [name, tools] of binding.ambiguous)
    globals.set(name, new Builtin(name, () => refuse(name, tools)))
  globals.set('call_tool', new Builtin('call_tool', (call) => callByName(call, byName, callTool)))
  globals.set('parallel', new Builtin('parallel', parallel))
  addData(globals, data, meter)
  return globals
}

function refuse(name: string, tools: readonly string[]): never {
  const calls = tools.map((tool) => `call_tool(${JSON.stringify(tool)}, ...)`)
  throw new StarlarkError(`${name} is the name of several tools: use ${calls.join(' or ')}`)
}

/** Binds the entries of `data` to their names, and binds the whole object to `data`. */
function addData(
  globals: Map<string, StarlarkValue>,
  data: Uint8Array | undefined,
  meter: ScriptMeter,
): void {
  if (data === undefined) return
  let value: StarlarkValue
  try {
    value = readJson(bytesOf(data, meter), meter)
  } catch (error) {
    if (error instanceof JsonTextError) throw new StarlarkError(`invalid 'data' argument: ${error.message}`)
    throw error
  }
  if (!(value instanceof Dict)) throw new StarlarkError("'data' argument must be an object")
  const taken = new Set(globals.keys())
  if (!taken.has('data')) globals.set('data', value)
  for (const [key, item] of value.entries()) {
    if (typeof key !== 'string') continue
    const name = decode(key)
    if (taken.has(name))
      throw new StarlarkError(`data key ${JSON.stringify(name)} conflicts with a builtin or tool name`)
    globals.set(name, item)
  }
}

function bytesOf(json: Uint8Array, meter: ScriptMeter): string {
  meter.text(json.length)
  return Buffer.from(json.buffer, json.byteOffset, json.byteLength).toString('latin1')
}

/** Implements `call_tool("name", key=value)`. */
function callByName(
  call: NativeCall,
  tools: ReadonlyMap<string, ScriptTool>,
  callTool: CallScriptTool,
): ScriptWork {
  const [first, ...rest] = call.args
  if (first === undefined) throw new StarlarkError('call_tool: requires at least 1 argument')
  if (typeof first !== 'string') throw new StarlarkError('call_tool: first argument must be a string')
  const name = decode(first)
  const tool = tools.get(name)
  if (!tool && (rest.length > 0 || name.length > maxName)) throw unknownTool(name.slice(0, maxName))
  // An unlisted tool may belong to an unavailable backend. The response distinguishes an unavailable tool from an
  // unknown one.
  return callBound(call, tool ?? { name, parameters: [] }, rest, callTool)
}

function unknownTool(name: string): StarlarkError {
  return new StarlarkError(`call_tool: unknown tool ${JSON.stringify(name)}`)
}

function* callBound(
  call: NativeCall,
  tool: ScriptTool,
  args: readonly StarlarkValue[],
  callTool: CallScriptTool,
): ScriptWork {
  const { meter } = call
  const json = writeJson(argumentsOf(call, tool, args), meter)
  if (json.length > maxArgumentBytes)
    throw new StarlarkError(
      `${tool.name}: the arguments are ${json.length} bytes of JSON; the limit is ${maxArgumentBytes}`,
    )
  const response: { got: ToolResponse } = { got: { kind: 'nothing' } }
  yield {
    kind: 'wait',
    begin(settle) {
      callTool(tool.name, Uint8Array.from(Buffer.from(json, 'latin1')), (got) => {
        response.got = got
        settle({ value: null })
      })
    },
  }
  return valueOf(tool.name, response.got, meter)
}

/** Assigns positional arguments in the order of the tool's schema. */
function argumentsOf(call: NativeCall, tool: ScriptTool, args: readonly StarlarkValue[]): Dict {
  const all = new Dict()
  if (args.length > tool.parameters.length) {
    const most = tool.parameters.length
    const takes =
      most === 0
        ? 'accepts only keyword arguments'
        : `accepts at most ${most} positional argument${most === 1 ? '' : 's'} (${tool.parameters.join(', ')})`
    throw new StarlarkError(`${tool.name}: ${takes}`)
  }
  args.forEach((value, i) => all.set(encode(tool.parameters[i] ?? ''), value, call.meter))
  for (const [name, value] of call.named) {
    if (all.get(name, call.meter) !== undefined)
      throw new StarlarkError(
        `${tool.name}: got multiple values for argument ${JSON.stringify(decode(name))}`,
      )
    all.set(name, value, call.meter)
  }
  return all
}

function valueOf(tool: string, response: ToolResponse, meter: ScriptMeter): StarlarkValue {
  if (response.kind === 'nothing') return null
  if (response.kind === 'unknown') throw unknownTool(tool)
  if (response.kind === 'error') throw new StarlarkError(`${tool}: ${response.message}`)
  const bytes = bytesOf(response.bytes, meter)
  if (response.kind === 'text') return textValue(stringIn(bytes, meter), meter)
  try {
    const value = readJson(bytes, meter)
    return response.kind === 'content' ? contentValue(value, meter) : value
  } catch (error) {
    if (!(error instanceof JsonTextError)) throw error
    throw new StarlarkError(`${tool}: cannot parse the result: ${error.message}`)
  }
}

/** Returns the text of a JSON string. Without escapes, the text consists of the bytes between the quotes. */
function stringIn(json: string, meter: ScriptMeter): string {
  const value = json.includes('\\') ? readJson(json, meter) : json.slice(1, -1)
  return typeof value === 'string' ? value : ''
}

/** Parses JSON. Returns text that is not JSON unchanged. */
function textValue(bytes: string, meter: ScriptMeter): StarlarkValue {
  try {
    return readJson(bytes, meter)
  } catch (error) {
    if (error instanceof JsonTextError) return bytes
    throw error
  }
}

/** Returns text as strings and other content as objects. Returns a single item on its own, not in a list. */
function contentValue(content: StarlarkValue, meter: ScriptMeter): StarlarkValue {
  if (!(content instanceof List)) return content
  const values = content.items.map((item) => {
    if (!(item instanceof Dict) || item.get('type', meter) !== 'text') return item
    const text = item.get('text', meter)
    return typeof text === 'string' ? textValue(text, meter) : item
  })
  const [only = null] = values
  return values.length === 1 ? only : new List(values)
}

/**
 * Implements `parallel([f, g])`. Runs functions without arguments concurrently and returns the results in list order.
 */
function* parallel(call: NativeCall): ScriptWork {
  const [list = null] = positional(call, 1, 1)
  const callables = elementsOf(list, call.meter, 'parallel')
  callables.forEach((callee, i) => {
    if (!isCallable(callee)) throw new StarlarkError(`parallel: element ${i} is not callable`)
  })
  call.meter.elements(callables.length * 8)
  return yield { kind: 'parallel', callables }
}

/** True for names that the language defines. Tools must not override these names. */
export function isTaken(name: string): boolean {
  return universalNames.has(name) || fixedGlobals.some((fixed) => fixed === name)
}
