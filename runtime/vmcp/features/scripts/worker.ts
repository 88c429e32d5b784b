/**
 * The worker thread that runs scripts, one at a time. The thread communicates only through messages, including tool
 * calls and their responses.
 *
 * This file is bundled separately from the program. See workers/worker-file.ts.
 */
import { parentPort } from 'node:worker_threads'
import {
  compile,
  Dict,
  execute,
  jsonString,
  LimitError,
  ScriptMeter,
  StarlarkError,
  universalNames,
  type StarlarkValue,
  writeJson,
} from '../../../expr/starlark/index.ts'
import { type CallScriptTool, makeGlobals } from './globals.ts'
import {
  type FromWorker,
  maxLogCharacters,
  maxMessageCharacters,
  maxResultBytes,
  maxResultEscapes,
  type ToolResponse,
  type ToScriptWorker,
} from './messages.ts'

const scriptFile = 'script.star'

type Run = Extract<ToScriptWorker, { kind: 'run' }>
type Done = Extract<FromWorker, { kind: 'done' }>

const waiting = new Map<number, (response: ToolResponse) => void>()
let nextId = 1

function send(message: FromWorker, ...bytes: readonly (Uint8Array | undefined)[]): void {
  const buffers = bytes.flatMap((each) => (each?.buffer instanceof ArrayBuffer ? [each.buffer] : []))
  parentPort?.postMessage(message, buffers)
}

parentPort?.on('message', (message: ToScriptWorker) => {
  if (message.kind === 'response') {
    const settle = waiting.get(message.id)
    waiting.delete(message.id)
    settle?.(message.response)
    return
  }
  run(message).then(
    (value) => send(value, value.text, value.structured),
    (error: unknown) => send({ kind: 'failed', message: textOf(error) }),
  )
})

async function run({ script, data, binding, limits }: Run): Promise<Done> {
  waiting.clear()
  const meter = new ScriptMeter(limits)
  meter.text(script.length)
  const globals = makeGlobals(binding, data, callTool(meter), meter)
  const program = compile(script, new Set([...universalNames.keys(), ...globals.keys()]))
  const result = await execute(
    program,
    { ...limits, maxWaits: limits.maxCalls, globals, print: printer() },
    meter,
  )
  const json = serialized(result, meter)
  const text = bounded(jsonString(json, meter))
  if (text.length - json.length > maxResultEscapes)
    throw new StarlarkError(
      `the result contains more than ${maxResultEscapes} quotes and backslashes when written as JSON`,
    )
  return {
    kind: 'done',
    text: bytesOf(text),
    structured: result instanceof Dict ? bytesOf(json) : undefined,
  }
}

function callTool(meter: ScriptMeter): CallScriptTool {
  return (tool, args, settle) => {
    const id = nextId++
    waiting.set(id, settle)
    send({ kind: 'call', id, tool, args, held: meter.bytes }, args)
  }
}

/** Sends each line immediately, because unsent lines would be lost if the script were terminated. */
function printer(): (line: string, path: readonly number[]) => void {
  let left = maxLogCharacters
  return (line, path) => {
    if (left <= 0) return
    const part = line.slice(0, left)
    left -= part.length + 1
    send({ kind: 'print', line: part, path })
  }
}

function bounded(json: string): string {
  if (json.length <= maxResultBytes) return json
  throw new StarlarkError(`the result is ${json.length} bytes of JSON; the limit is ${maxResultBytes}`)
}

function bytesOf(text: string): Uint8Array {
  return Uint8Array.from(Buffer.from(text, 'latin1'))
}

function serialized(value: StarlarkValue, meter: ScriptMeter): string {
  try {
    return bounded(writeJson(value, meter))
  } catch (error) {
    if (error instanceof StarlarkError && !(error instanceof LimitError))
      throw new StarlarkError(`failed to serialize script result: ${error.message}`)
    throw error
  }
}

/** Messages that quote the script contain its raw bytes. */
function textOf(error: unknown): string {
  if (error instanceof StarlarkError) return error.describe(scriptFile).slice(0, maxMessageCharacters)
  return error instanceof RangeError ? 'a value is nested too deeply or is too large' : 'internal error'
}
