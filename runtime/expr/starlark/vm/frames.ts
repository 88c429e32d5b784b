/** What a task is working on: functions of the script and built-in functions in flight. */
import type { VariableSlot } from './bind.ts'
import type { Func, StarlarkValue, ScriptWork } from '../values/values.ts'
import type { Iteration } from '../values/iterate.ts'

/** A function of the script in flight. */
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

/** A built-in function in flight that has asked for something. */
export class NativeFrame {
  readonly work: ScriptWork
  constructor(work: ScriptWork) {
    this.work = work
  }
}
