/** A thread of execution: the script itself, or a function started by `parallel`. */
import type { Bytecode } from '../compiler/code.ts'
import { StarlarkError, type Trace } from '../errors.ts'
import { Frame, type NativeFrame } from './frames.ts'
import type { StarlarkValue } from '../values/values.ts'

export class ScriptTask {
  readonly frames: (Frame | NativeFrame)[] = []
  readonly parent: ScriptTask | undefined
  /** Determines the order of task output: the positions of the calls that started the task, from the script inwards. */
  readonly path: readonly number[]
  /** Number of printed lines and started tasks. */
  printed = 0
  /** Immediate result of a built-in function. */
  entry: StarlarkValue | undefined

  constructor(parent: ScriptTask | undefined, path: readonly number[]) {
    this.parent = parent
    this.path = path
  }

  /** True when the function is running in this task or in a task that waits for it. */
  isRunning(code: Bytecode): boolean {
    for (const frame of this.frames) if (frame instanceof Frame && frame.fn.code === code) return true
    return this.parent?.isRunning(code) ?? false
  }

  /** Ends the task with an error, and adds the current position to the error. */
  fail(error: unknown): StarlarkError {
    const failure = error instanceof StarlarkError ? error : toScriptError(error)
    const trace = this.frames
      .filter((frame) => frame instanceof Frame)
      .map(placeOf)
      .toReversed()
    const [innermost] = trace
    if (!failure.position && innermost) {
      failure.position = { line: innermost.line, column: innermost.column }
      failure.trace = trace
    }
    for (const frame of this.frames) {
      if (frame instanceof Frame) frame.close()
    }
    this.frames.length = 0
    return failure
  }
}

/** Returns the position of the last executed instruction. */
function placeOf({ fn, at }: Frame): Trace {
  const pair = Math.max(at - 2, 0)
  return { name: fn.name, line: fn.code.places[pair] ?? 1, column: fn.code.places[pair + 1] ?? 1 }
}

/** Converts errors that the script did not cause: stack overflows and internal errors. */
function toScriptError(error: unknown): StarlarkError {
  const isBound = error instanceof RangeError
  const failure = new StarlarkError(isBound ? 'value is nested too deeply or is too large' : 'internal error')
  failure.cause = error
  return failure
}
