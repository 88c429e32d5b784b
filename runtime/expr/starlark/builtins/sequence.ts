/** Built-in functions that operate on sequences. */
import { asBool, asCallable, asInt, failure, positional, unpack } from './arguments.ts'
import { equal, ordered } from '../values/compare.ts'
import { StarlarkError } from '../errors.ts'
import { Range } from '../values/scalars.ts'
import { lengthOf, truth } from '../values/size.ts'
import {
  type NativeCall,
  List,
  type StarlarkValue,
  Tuple,
  typeOf,
  type ScriptWork,
} from '../values/values.ts'
import { elementsOf, isSequence } from '../values/iterate.ts'
import { sizeOf } from '../vm/meter.ts'

export const sequenceFunctions: Readonly<Record<string, (call: NativeCall) => StarlarkValue | ScriptWork>> = {
  all: (call) => elements(call, unpack(call, 'iterable')[0], 1).every(truth),
  any: (call) => elements(call, unpack(call, 'iterable')[0], 1).some(truth),
  enumerate(call) {
    const [over, start] = unpack(call, 'iterable', 'start?')
    const first = start === undefined ? 0 : asInt(call, start, 'start')
    const items = elements(call, over, 1)
    call.meter.elements(items.length * 2)
    return new List(items.map((item, i) => new Tuple([first + i, item])))
  },
  len(call) {
    const [value = null] = positional(call, 1, 1)
    const length = lengthOf(value)
    if (length === undefined) throw failure(call, `value of type ${typeOf(value)} has no len`)
    return length
  },
  max: (call) => extreme(call, '>'),
  min: (call) => extreme(call, '<'),
  range,
  reversed(call) {
    return new List(elements(call, unpack(call, 'sequence')[0], 1).toReversed())
  },
  sorted,
  zip,
}

function elements(
  call: NativeCall,
  value: StarlarkValue | undefined,
  parameter: number | string,
): StarlarkValue[] {
  return elementsOf(value ?? null, call.meter, `${call.name}: for parameter ${parameter}`)
}

function range(call: NativeCall): StarlarkValue {
  const args = positional(call, 1, 3).map((value, i) =>
    asInt(call, value, ['start', 'stop', 'step'][i] ?? ''),
  )
  const [start = 0, stop = 0] = args.length === 1 ? [0, args[0]] : args
  const step = args[2] ?? 1
  if (step === 0) throw failure(call, 'step argument must not be zero')
  call.meter.allocate(sizeOf.function)
  return new Range(start, stop, step)
}

/** Implements `max` and `min`. Returns the first of several equal maximums or minimums. */
function* extreme(call: NativeCall, op: '<' | '>'): ScriptWork {
  const { key, rest } = keyOf(call)
  if (rest.length > 0) throw failure(call, `unexpected keyword argument ${JSON.stringify(rest[0])}`)
  if (call.args.length === 0)
    throw new StarlarkError(`${call.name} requires at least one positional argument`)
  const items = itemsOf(call)
  let best: StarlarkValue | undefined
  let bestKey: StarlarkValue = null
  for (const item of items) {
    call.meter.step(1)
    const own = key === undefined ? item : yield { kind: 'call', callee: key, args: [item] }
    if (best !== undefined && !ordered(op, own, bestKey, call.meter)) continue
    best = item
    bestKey = own
  }
  if (best === undefined) throw failure(call, 'argument is an empty sequence')
  return best
}

function itemsOf(call: NativeCall): readonly StarlarkValue[] {
  if (call.args.length !== 1) return call.args
  const [only = null] = call.args
  if (!isSequence(only)) throw failure(call, `${typeOf(only)} value is not iterable`)
  return elementsOf(only, call.meter, call.name)
}

function keyOf(call: NativeCall): {
  readonly key: StarlarkValue | undefined
  readonly rest: readonly string[]
} {
  const given = call.named.find(([name]) => name === 'key')?.[1]
  const rest = call.named.map(([name]) => name).filter((name) => name !== 'key')
  if (rest.length > 0) unpack({ ...call, args: [], named: call.named }, 'key?')
  return { key: given === undefined || given === null ? undefined : asCallable(call, given, 'key'), rest }
}

function* sorted(call: NativeCall): ScriptWork {
  const [over, key, reverse] = unpack(call, 'iterable', 'key?', 'reverse?')
  const backwards = asBool(call, reverse, 'reverse')
  const fn = key === undefined || key === null ? undefined : asCallable(call, key, 'key')
  const items = elements(call, over, 'iterable')
  const keys: StarlarkValue[] = []
  for (const item of items)
    keys.push(fn === undefined ? item : yield { kind: 'call', callee: fn, args: [item] })
  const { meter } = call
  const order = items.map((_, i) => i)
  order.sort((a, b) => {
    meter.step(1)
    const [x, y] = [keys[a] ?? null, keys[b] ?? null]
    if (ordered('<', x, y, meter)) return backwards ? 1 : -1
    return ordered('<', y, x, meter) ? (backwards ? -1 : 1) : 0
  })
  return new List(order.map((i) => items[i] ?? null))
}

function zip(call: NativeCall): StarlarkValue {
  const columns = positional(call, 0, Number.MAX_SAFE_INTEGER).map((value, i) => {
    if (!isSequence(value)) throw failure(call, `argument #${i + 1} is not iterable: ${typeOf(value)}`)
    return elementsOf(value, call.meter, 'zip')
  })
  const length = columns.length === 0 ? 0 : Math.min(...columns.map((column) => column.length))
  call.meter.elements(length * (columns.length + 1))
  return new List(Array.from({ length }, (_, i) => new Tuple(columns.map((column) => column[i] ?? null))))
}

/** Returns a value's index within part of a list. Throws when the value is absent. */
export function indexIn(
  list: List,
  value: StarlarkValue,
  from: number,
  to: number,
  call: NativeCall,
): number {
  for (let i = from; i < to; i++) {
    call.meter.step(1)
    if (equal(list.items[i] ?? null, value, call.meter)) return i
  }
  throw new StarlarkError(`${call.name}: value not in list`)
}
