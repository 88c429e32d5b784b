/**
 * Executes a script. The script's tasks take turns on one thread, and external operations run concurrently.
 *
 * The whole script shares one meter and one limit on concurrent waits, however deeply `parallel` is nested. All
 * functions of a `parallel` call run to completion, even when one of them fails. The call then fails with the first
 * failure in list order.
 */
import { LimitError, StarlarkError } from '../errors.ts'
import type { CompiledScript } from '../compiler/compiler.ts'
import { Cell, type TaskEffect, List, type Settled, type StarlarkValue } from '../values/values.ts'
import { type StarlarkLimits, ScriptMeter } from './meter.ts'
import { call, run, scriptFunction, type ExecutionContext } from './machine.ts'
import { ScriptTask } from './task.ts'
import { universalNames } from '../builtins/universe.ts'

export interface SchedulerOptions extends StarlarkLimits {
  /** Maximum number of concurrent waits. */
  readonly maxWaits: number
  /**
   * Names available to the script in addition to the language's own names. A script variable with one of these names
   * starts with the given value.
   */
  readonly globals: ReadonlyMap<string, StarlarkValue>
  /** Receives a printed line. Sorting lines by `path`, element by element, yields the order of a sequential run. */
  readonly print: (line: string, path: readonly number[]) => void
}

interface Ready {
  readonly task: ScriptTask
  readonly input: Settled | undefined
}

/** Runs a script to completion. Rejects with StarlarkError. */
export function execute(
  program: CompiledScript,
  options: SchedulerOptions,
  meter = new ScriptMeter(options),
): Promise<StarlarkValue> {
  return new Promise((resolve, reject) => {
    const ended = (outcome: Settled): void => {
      if ('value' in outcome) resolve(outcome.value)
      else reject(outcome.error)
    }
    new Execution(options, meter, ended).start(program)
  })
}

class Execution {
  readonly #maxWaits: number
  readonly #around: ExecutionContext
  readonly #ended: (outcome: Settled) => void
  readonly #ready: Ready[] = []
  readonly #running = new Map<ScriptTask, (outcome: Settled) => void>()
  /** Waits that are queued until another wait ends. */
  readonly #queue: (() => void)[] = []
  readonly #given: ReadonlyMap<string, StarlarkValue>
  #waits = 0
  #busy = false

  constructor(
    { maxWaits, globals, print }: SchedulerOptions,
    meter: ScriptMeter,
    ended: (outcome: Settled) => void,
  ) {
    this.#ended = ended
    this.#maxWaits = maxWaits
    this.#given = globals
    this.#around = {
      meter,
      globals: new Map([...universalNames, ...globals]),
      print: (task, line) => print(line, [...task.path, task.printed++]),
    }
  }

  start({ code }: CompiledScript): void {
    const task = new ScriptTask(undefined, [])
    this.#begin(task, this.#ended, () => {
      const fn = scriptFunction(code)
      call(task, fn, [], [], this.#around)
      const [frame] = task.frames
      if (!frame || !('variables' in frame)) return
      // Initializes the variable with a given name. The script may assign to this variable.
      code.variables.forEach((name, slot) => {
        const given = this.#given.get(name)
        if (given === undefined) return
        const place = frame.variables[slot]
        if (place instanceof Cell) place.value = given
        else frame.variables[slot] = given
      })
    })
    this.#drain()
  }

  #begin(task: ScriptTask, ended: (outcome: Settled) => void, enter: () => void): void {
    this.#running.set(task, ended)
    try {
      enter()
      this.#ready.push({ task, input: task.entry === undefined ? undefined : { value: task.entry } })
    } catch (error) {
      this.#end(task, { error: task.fail(error) })
    }
  }

  #end(task: ScriptTask, outcome: Settled): void {
    const ended = this.#running.get(task)
    this.#running.delete(task)
    // Stops without waiting for the other tasks, because no task can continue after a limit is reached.
    if ('error' in outcome && outcome.error instanceof LimitError) this.#stop(outcome)
    else ended?.(outcome)
  }

  #stop(outcome: Settled): void {
    this.#running.clear()
    this.#ready.length = 0
    this.#queue.length = 0
    this.#ended(outcome)
  }

  /** Runs every runnable task, one after another. */
  #drain(): void {
    if (this.#busy) return
    this.#busy = true
    for (let next = this.#ready.shift(); next; next = this.#ready.shift()) this.#advance(next)
    this.#busy = false
  }

  #advance({ task, input }: Ready): void {
    try {
      if (input && 'error' in input) throw input.error
      const progress = run(task, input?.value, this.#around)
      if (progress.kind === 'done') this.#end(task, { value: progress.value })
      else if (progress.kind === 'wait') this.#wait(task, progress)
      else this.#parallel(task, progress.callables)
    } catch (error) {
      this.#end(task, { error: task.fail(error) })
    }
  }

  #resume(task: ScriptTask, input: Settled): void {
    if (!this.#running.has(task)) return
    this.#ready.push({ task, input })
    this.#drain()
  }

  #wait(task: ScriptTask, { begin }: Extract<TaskEffect, { kind: 'wait' }>): void {
    const start = (): void => {
      this.#waits++
      let settled = false
      begin((outcome) => {
        if (settled) return
        settled = true
        this.#waits--
        this.#queue.shift()?.()
        this.#resume(task, outcome)
      })
    }
    if (this.#waits < this.#maxWaits) start()
    else this.#queue.push(start)
  }

  /**
   * Starts the callables in order, with a limited number running at a time. When a callable ends, the next callable
   * starts.
   */
  #parallel(parent: ScriptTask, callables: readonly StarlarkValue[]): void {
    const group = {
      place: parent.printed++,
      results: [] as StarlarkValue[],
      failed: undefined as Failure | undefined,
    }
    let next = 0
    let open = callables.length
    if (open === 0) {
      this.#resume(parent, { value: new List([]) })
      return
    }
    const startNext = (): void => {
      const index = next++
      const callee = callables[index]
      if (index >= callables.length || callee === undefined) return
      const task = new ScriptTask(parent, [...parent.path, group.place, index])
      const ended = (outcome: Settled): void => {
        open--
        if ('value' in outcome) group.results[index] = outcome.value
        else if (!group.failed || index < group.failed.index) group.failed = { index, error: outcome.error }
        if (open === 0) this.#resume(parent, outcomeOf(group.results, group.failed))
        else startNext()
      }
      this.#begin(task, ended, () => {
        task.entry = call(task, callee, [], [], this.#around)
      })
    }
    const first = Math.min(this.#maxWaits, callables.length)
    for (let i = 0; i < first; i++) startNext()
  }
}

interface Failure {
  readonly index: number
  readonly error: Error
}

function outcomeOf(results: StarlarkValue[], failed: Failure | undefined): Settled {
  if (!failed) return { value: new List(results) }
  const { index, error } = failed
  const wrapped = new StarlarkError(`parallel: task ${index} failed: ${error.message}`)
  if (error instanceof StarlarkError) {
    wrapped.position = error.position
    wrapped.trace = error.trace
  }
  return { error: wrapped }
}
