/** The call frames of a task: script functions and built-in functions. */
import type { VariableSlot } from './bind.ts'
import type { Func, StarlarkValue, ScriptWork } from '../values/values.ts'
import type { Iteration } from '../values/iterate.ts'

/** The frame of a script function. */
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

/** The frame of a built-in function that waits for the response to a request. */
export class NativeFrame {
  readonly work: ScriptWork
  constructor(work: ScriptWork) {
    this.work = work
  }
}
