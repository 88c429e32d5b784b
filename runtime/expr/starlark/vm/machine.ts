/**
 * Executes compiled functions. The heap contains the frames, so a run can suspend at any call that waits and resume
 * later. No script can exhaust the host's stack.
 *
 * `run` executes until the task ends or waits. The scheduler handles the effects that a task waits for (scheduler.ts).
 * Functions must not call themselves, directly or indirectly.
 * Source: Starlark specification, "Function definitions".
 */
import { isCallable } from '../builtins/arguments.ts'
import { getAttribute } from '../builtins/attributes.ts'
import { bind } from './bind.ts'
import { type Bytecode, opcode, operatorTable, unaryOperators } from '../compiler/code.ts'
import { truth } from '../values/size.ts'
import {
  Builtin,
  type NativeCall,
  Cell,
  Dict,
  type TaskEffect,
  Func,
  isWork,
  List,
  type Named,
  requireHashable,
  type StarlarkValue,
  Tuple,
  typeOf,
} from '../values/values.ts'
import { StarlarkError } from '../errors.ts'
import { elementsOf, isSequence, iterate } from '../values/iterate.ts'
import { type ScriptMeter, sizeOf, tooManySteps } from './meter.ts'
import { binary, inPlace, unary } from '../values/operators.ts'
import { repr } from '../values/print.ts'
import { getIndex, setIndex, slice } from '../values/subscript.ts'
import { Frame, NativeFrame } from './frames.ts'
import type { ScriptTask } from './task.ts'

/** Result of running a task: the task has ended, or waits for an effect. */
export type TaskProgress =
  | { readonly kind: 'done'; readonly value: StarlarkValue }
  | Exclude<TaskEffect, { kind: 'call' }>

export interface ExecutionContext {
  readonly meter: ScriptMeter
  readonly globals: ReadonlyMap<string, StarlarkValue>
  readonly print: (task: ScriptTask, line: string) => void
}

/** Resumes a task with `input` as the response to its last request. Throws StarlarkError. */
export function run(
  task: ScriptTask,
  input: StarlarkValue | undefined,
  context: ExecutionContext,
): TaskProgress {
  let response = input
  for (;;) {
    const top = task.frames.at(-1)
    if (!top) return { kind: 'done', value: response ?? null }
    if (top instanceof NativeFrame) {
      const step = top.work.next(response ?? null)
      response = undefined
      if (step.done === true) {
        task.frames.pop()
        response = step.value
      } else if (step.value.kind === 'call')
        response = call(task, step.value.callee, step.value.args, [], context)
      else return step.value
      continue
    }
    if (response !== undefined) top.stack.push(response)
    response = runFrame(task, top, context)
  }
}

/** Starts a call. Built-in functions return a result immediately if possible; other functions become the top frame. */
export function call(
  task: ScriptTask,
  callee: StarlarkValue,
  args: readonly StarlarkValue[],
  named: Named,
  context: ExecutionContext,
): StarlarkValue | undefined {
  if (callee instanceof Func) {
    if (task.isRunning(callee.code)) throw new StarlarkError(`function ${callee.name} called recursively`)
    task.frames.push(new Frame(callee, bind(callee, args, named, context.meter)))
    return undefined
  }
  if (!(callee instanceof Builtin))
    throw new StarlarkError(`invalid call of non-function (${typeOf(callee)})`)
  const request: NativeCall = {
    name: callee.name,
    args,
    named,
    meter: context.meter,
    print: (line) => context.print(task, line),
  }
  const result = callee.run(request)
  if (!isWork(result)) return result
  task.frames.push(new NativeFrame(result))
  return undefined
}

/**
 * Runs the top frame until it ends (returns the result) or calls another function (returns undefined). This is
 * deliberately a single function: the stack and the code stay in local variables, and no instruction requires a
 * function call.
 */
// oxlint-disable-next-line max-lines-per-function -- a function call per instruction would slow down every script
function runFrame(task: ScriptTask, frame: Frame, context: ExecutionContext): StarlarkValue | undefined {
  const { meter } = context
  const { stack, variables, iterations, fn } = frame
  const { ops, constants, names, variables: variableNames } = fn.code
  const pop = (): StarlarkValue => stack.pop() ?? null
  for (;;) {
    const op = ops[frame.at]
    const argument = ops[frame.at + 1] ?? 0
    frame.at += 2
    if (++meter.steps > meter.maxSteps) throw tooManySteps()
    switch (op) {
      case opcode.pop:
        stack.pop()
        break
      case opcode.dup:
        stack.push(stack.at(-1) ?? null)
        break
      case opcode.dup2:
        stack.push(stack.at(-2) ?? null, stack.at(-1) ?? null)
        break
      case opcode.swap: {
        const y = pop()
        stack.push(y, pop())
        break
      }
      case opcode.constant:
        stack.push(constants[argument] ?? null)
        break
      case opcode.none:
        stack.push(null)
        break
      case opcode.local: {
        const value = variables[argument]
        if (value === undefined || value instanceof Cell) throw unassigned(variableNames[argument])
        stack.push(value)
        break
      }
      case opcode.setLocal:
        variables[argument] = pop()
        break
      case opcode.cell:
      case opcode.free: {
        const cell = op === opcode.cell ? variables[argument] : fn.free[argument]
        const value = cell instanceof Cell ? cell.value : undefined
        if (value === undefined)
          throw unassigned(op === opcode.cell ? variableNames[argument] : fn.code.freeNames[argument])
        stack.push(value)
        break
      }
      case opcode.setCell:
      case opcode.setFree: {
        const cell = op === opcode.setCell ? variables[argument] : fn.free[argument]
        if (cell instanceof Cell) cell.value = pop()
        break
      }
      case opcode.global:
        stack.push(context.globals.get(names[argument] ?? '') ?? null)
        break
      case opcode.list:
      case opcode.tuple: {
        const items = argument === 0 ? [] : stack.splice(-argument)
        meter.allocate(sizeOf.object + sizeOf.element * argument)
        stack.push(op === opcode.list ? new List(items) : new Tuple(items))
        break
      }
      case opcode.dict:
        meter.allocate(sizeOf.dict)
        stack.push(new Dict())
        break
      case opcode.setUnique:
      case opcode.setEntry: {
        const value = pop()
        const key = pop()
        setEntry(pop(), key, value, op === opcode.setUnique, meter)
        break
      }
      case opcode.append: {
        const value = pop()
        const list = pop()
        if (!(list instanceof List)) break
        meter.appended(list.items.length)
        list.items.push(value)
        break
      }
      case opcode.closure:
        closure(frame, argument, meter)
        break
      case opcode.call: {
        const result = callFromStack(task, frame, argument, context)
        if (result === undefined) return undefined
        stack.push(result)
        break
      }
      case opcode.attribute:
        stack.push(getAttribute(pop(), names[argument] ?? '', meter))
        break
      case opcode.index: {
        const index = pop()
        stack.push(getIndex(pop(), index, meter))
        break
      }
      case opcode.setIndex: {
        // For an augmented assignment, the stack contains the sequence, the index and the value, in this order.
        // Otherwise, the value is at the bottom.
        const c = pop()
        const b = pop()
        const a = pop()
        if (argument === 1) setIndex(a, b, c, meter)
        else setIndex(b, c, a, meter)
        break
      }
      case opcode.setAttribute:
        throw new StarlarkError(`can't assign to .${names[argument] ?? ''} field of ${typeOf(pop())}`)
      case opcode.slice: {
        const step = pop()
        const to = pop()
        const from = pop()
        stack.push(slice(pop(), from, to, step, meter))
        break
      }
      case opcode.binary:
      case opcode.inPlace: {
        const y = pop()
        const x = pop()
        const operator = operatorTable[argument] ?? '+'
        stack.push(op === opcode.binary ? binary(operator, x, y, meter) : inPlace(operator, x, y, meter))
        break
      }
      case opcode.unary:
        stack.push(unary(unaryOperators[argument] ?? '-', pop(), meter))
        break
      case opcode.not:
        stack.push(!truth(pop()))
        break
      case opcode.unpack:
        unpackInto(stack, pop(), argument, meter)
        break
      case opcode.iterate: {
        const over = pop()
        const iteration = iterate(over)
        if (!iteration) throw new StarlarkError(`${typeOf(over)} value is not iterable`)
        iterations.push(iteration)
        break
      }
      case opcode.next: {
        const item = iterations.at(-1)?.next()
        if (item === undefined) frame.at = argument
        else stack.push(item)
        break
      }
      case opcode.endIterate:
        iterations.pop()?.close()
        break
      case opcode.jump:
        frame.at = argument
        break
      case opcode.jumpIfNot:
        if (!truth(pop())) frame.at = argument
        break
      case opcode.jumpIfFalseKeep:
      case opcode.jumpIfTrueKeep:
        if (truth(stack.at(-1) ?? null) === (op === opcode.jumpIfTrueKeep)) frame.at = argument
        else stack.pop()
        break
      case opcode.return:
        frame.close()
        task.frames.pop()
        return pop()
      default:
        throw new StarlarkError('internal error: unknown instruction')
    }
  }
}

function unassigned(name = ''): StarlarkError {
  return new StarlarkError(`local variable ${name} referenced before assignment`)
}

function setEntry(
  dict: StarlarkValue,
  key: StarlarkValue,
  value: StarlarkValue,
  unique: boolean,
  meter: ScriptMeter,
): void {
  if (!(dict instanceof Dict)) return
  requireHashable(key, meter)
  if (unique && dict.get(key, meter) !== undefined)
    throw new StarlarkError(`duplicate key: ${repr(key, meter)}`)
  dict.set(key, value, meter)
}

function closure(frame: Frame, index: number, meter: ScriptMeter): void {
  const code = frame.fn.code.functions[index]
  if (!code) return
  const count = code.parameters.defaults.filter(Boolean).length
  const defaults = count === 0 ? [] : frame.stack.splice(-count)
  const free = code.free.map((binding) => {
    const place = binding.scope === 'local' ? frame.variables[binding.variable.slot] : undefined
    if (place instanceof Cell) return place
    return (binding.scope === 'free' ? frame.fn.free[binding.index] : undefined) ?? new Cell(undefined)
  })
  meter.allocate(sizeOf.function + sizeOf.element * (count + free.length))
  frame.stack.push(new Func(code, defaults, free))
}

function callFromStack(
  task: ScriptTask,
  frame: Frame,
  index: number,
  context: ExecutionContext,
): StarlarkValue | undefined {
  const shape = frame.fn.code.calls[index]
  if (!shape) return undefined
  const { stack } = frame
  const { meter } = context
  const dict = shape.dict ? (stack.pop() ?? null) : undefined
  const list = shape.list ? (stack.pop() ?? null) : undefined
  const values = shape.names.length === 0 ? [] : stack.splice(-shape.names.length)
  const named: [string, StarlarkValue][] = shape.names.map((name, i) => [name, values[i] ?? null])
  const args = shape.positional === 0 ? [] : stack.splice(-shape.positional)
  const callee = stack.pop() ?? null
  meter.allocate(sizeOf.element * (args.length + named.length))
  if (!isCallable(callee)) throw new StarlarkError(`invalid call of non-function (${typeOf(callee)})`)
  if (dict !== undefined) addNamed(named, dict, meter)
  if (list !== undefined) addPositional(args, list, meter)
  return call(task, callee, args, named, context)
}

function addNamed(named: [string, StarlarkValue][], dict: StarlarkValue, meter: ScriptMeter): void {
  if (!(dict instanceof Dict))
    throw new StarlarkError(`argument after ** must be a mapping, not ${typeOf(dict)}`)
  meter.elements(dict.size)
  for (const [key, value] of dict.entries()) {
    if (typeof key !== 'string') throw new StarlarkError(`keywords must be strings, not ${typeOf(key)}`)
    named.push([key, value])
  }
}

function addPositional(args: StarlarkValue[], list: StarlarkValue, meter: ScriptMeter): void {
  if (!isSequence(list)) throw new StarlarkError(`argument after * must be iterable, not ${typeOf(list)}`)
  for (const item of elementsOf(list, meter, '*')) args.push(item)
}

/** Pushes the elements onto the stack, with the first element on top. */
function unpackInto(stack: StarlarkValue[], value: StarlarkValue, count: number, meter: ScriptMeter): void {
  if (!isSequence(value)) throw new StarlarkError(`got ${typeOf(value)} in sequence assignment`)
  const items = elementsOf(value, meter, 'unpack')
  const { length } = items
  if (length !== count)
    throw new StarlarkError(
      `too ${length < count ? 'few' : 'many'} values to unpack (got ${length}, want ${count})`,
    )
  for (let i = length - 1; i >= 0; i--) stack.push(items[i] ?? null)
}

/** Wraps the code of a whole script in a function. */
export function scriptFunction(code: Bytecode): Func {
  return new Func(code, [], [])
}
