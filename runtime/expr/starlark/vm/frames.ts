/** A task's call frames: script functions and built-in functions. */
import type { VariableSlot } from './bind.ts'
import type { Func, StarlarkValue, ScriptWork } from '../values/values.ts'
import type { Iteration } from '../values/iterate.ts'

/** A script function's frame. */
export class Frame {
  readonly fn: Func
  readonly variables: VariableSlot[]
  readonly stack: StarlarkValue[] = []
  readonly iterations: Iteration[] = []
  at = 0
  constructor(fn: Func, variables: VariableSlot[]) {
    this.fn = fn
    this.variables = variables
  }

  close(): void {
    for (let open = this.iterations.pop(); open; open = this.iterations.pop()) open.close()
  }
}

/** The frame of a built-in function that is waiting for the response to a request. */
export class NativeFrame {
  readonly work: ScriptWork
  constructor(work: ScriptWork) {
    this.work = work
  }
}
