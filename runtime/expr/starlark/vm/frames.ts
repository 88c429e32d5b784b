/** What a task is working on: functions of the script and built-in functions in flight. */
import type { Variable } from './bind.ts'
import type { Func, StarlarkValue, Work } from '../values/values.ts'
import type { Iteration } from '../values/iterate.ts'

/** A function of the script in flight. */
export class Frame {
  readonly fn: Func
  readonly variables: Variable[]
  readonly stack: StarlarkValue[] = []
  readonly iterations: Iteration[] = []
  at = 0
  constructor(fn: Func, variables: Variable[]) {
    this.fn = fn
    this.variables = variables
  }

  close(): void {
    for (let open = this.iterations.pop(); open; open = this.iterations.pop()) open.close()
  }
}

/** A built-in function in flight that has asked for something. */
export class NativeFrame {
  readonly work: Work
  constructor(work: Work) {
    this.work = work
  }
}
