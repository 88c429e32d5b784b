/** One line of execution: the script itself, or one function that `parallel` started. */
import type { Bytecode } from '../compiler/code.ts'
import { StarlarkError, type Trace } from '../errors.ts'
import { Frame, type NativeFrame } from './frames.ts'
import type { StarlarkValue } from '../values/values.ts'

export class ScriptTask {
  readonly frames: (Frame | NativeFrame)[] = []
  readonly parent: ScriptTask | undefined
  /** Orders what tasks print: places of the starting calls, from the script inwards. */
  readonly path: readonly number[]
  /** Lines printed and tasks started so far. */
  printed = 0
  /** What the function answered at once, when it is built in. */
  entry: StarlarkValue | undefined

  constructor(parent: ScriptTask | undefined, path: readonly number[]) {
    this.parent = parent
    this.path = path
  }

  /** True when a function is in flight here or in a task that waits for this one. */
  isRunning(code: Bytecode): boolean {
    for (const frame of this.frames) if (frame instanceof Frame && frame.fn.code === code) return true
    return this.parent?.isRunning(code) ?? false
  }

  /** Ends the task because of an error, which gets the place where it happened. */
  fail(error: unknown): StarlarkError {
    const failure = error instanceof StarlarkError ? error : foreign(error)
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

/** The instruction that was carried out last. */
function placeOf({ fn, at }: Frame): Trace {
  const pair = Math.max(at - 2, 0)
  return { name: fn.name, line: fn.code.places[pair] ?? 1, column: fn.code.places[pair + 1] ?? 1 }
}

/** What is no error of the script's: the host's own bounds, or ours. */
function foreign(error: unknown): StarlarkError {
  const isBound = error instanceof RangeError
  const failure = new StarlarkError(isBound ? 'value is too deep or too large' : 'internal error')
  failure.cause = error
  return failure
}
