/**
 * Binds a call's arguments to a script function's parameters.
 * Source: Starlark specification, "Functions", "Function and method calls".
 */
import { Cell, Dict, type Func, type Named, type StarlarkValue, Tuple } from '../values/values.ts'
import { StarlarkError } from '../errors.ts'
import { type ScriptMeter, sizeOf } from './meter.ts'
import { likely } from '../compiler/spelling.ts'

export type VariableSlot = StarlarkValue | Cell | undefined

/** Returns a new frame's variables. Throws when the arguments do not match the parameters. */
export function bind(
  fn: Func,
  args: readonly StarlarkValue[],
  named: Named,
  meter: ScriptMeter,
): VariableSlot[] {
  const { parameters, variables, cells } = fn.code
  const places: VariableSlot[] = Array.from({ length: variables.length })
  meter.allocate(sizeOf.object + sizeOf.element * places.length)
  takePositional(fn, places, args, meter)
  takeNamed(fn, places, named, meter)
  takeDefaults(fn, places, parameters.positional + parameters.namedOnly)
  for (const at of cells) places[at] = new Cell(valueOf(places[at]))
  return places
}

function valueOf(place: VariableSlot): StarlarkValue | undefined {
  return place instanceof Cell ? place.value : place
}

function takePositional(
  fn: Func,
  places: VariableSlot[],
  args: readonly StarlarkValue[],
  meter: ScriptMeter,
): void {
  const { positional, namedOnly, list } = fn.code.parameters
  const count = Math.min(args.length, positional)
  for (let i = 0; i < count; i++) places[i] = args[i]
  if (list !== undefined) {
    meter.elements(args.length - count)
    places[list] = new Tuple(args.slice(count))
  } else if (args.length > positional) {
    if (positional + namedOnly === 0 && fn.code.parameters.dict === undefined)
      throw new StarlarkError(`function ${fn.name} accepts no arguments (${args.length} given)`)
    const most = fn.code.parameters.defaults.slice(0, positional).some(Boolean) ? 'at most ' : ''
    const s = positional === 1 ? '' : 's'
    throw new StarlarkError(
      `function ${fn.name} accepts ${most}${positional} positional argument${s} (${args.length} given)`,
    )
  }
}

/** Parameter indexes by name. */
const positions = new WeakMap<Func['code'], ReadonlyMap<string, number>>()

/** Star parameters are numbered in the order of declaration. Named arguments never fill a star parameter. */
function positionsOf({ code }: Func): ReadonlyMap<string, number> {
  const known = positions.get(code)
  if (known) return known
  const slots = slotsOf(code)
  const made = new Map(slots.map((slot) => [code.variables[slot] ?? '', slot]))
  positions.set(code, made)
  return made
}

/** Returns the indexes of the plain parameters, in order. */
function slotsOf({ parameters }: Func['code']): number[] {
  const { positional, namedOnly, list, dict } = parameters
  const slots: number[] = []
  for (let slot = 0; slots.length < positional + namedOnly; slot++)
    if (slot !== list && slot !== dict) slots.push(slot)
  return slots
}

function takeNamed(fn: Func, places: VariableSlot[], named: Named, meter: ScriptMeter): void {
  const { dict } = fn.code.parameters
  const rest = dict === undefined ? undefined : new Dict()
  if (rest && dict !== undefined) {
    meter.allocate(sizeOf.dict)
    places[dict] = rest
  }
  if (named.length === 0) return
  const where = positionsOf(fn)
  for (const [name, value] of named) {
    const at = where.get(name)
    if (at === undefined ? rest?.get(name, meter) !== undefined : places[at] !== undefined)
      throw new StarlarkError(`function ${fn.name} got multiple values for parameter ${JSON.stringify(name)}`)
    if (at !== undefined) places[at] = value
    else if (rest) rest.set(name, value, meter)
    else {
      const guess = likely(name, [...where.keys()])
      const hint = guess === undefined ? '' : ` (did you mean ${guess}?)`
      throw new StarlarkError(
        `function ${fn.name} got an unexpected keyword argument ${JSON.stringify(name)}${hint}`,
      )
    }
  }
}

function takeDefaults(fn: Func, places: VariableSlot[], count: number): void {
  const missing: string[] = []
  let next = 0
  const slots = count === 0 ? [] : slotsOf(fn.code)
  slots.forEach((slot, i) => {
    const fallback = fn.code.parameters.defaults[i] === true ? fn.defaults[next++] : undefined
    if (places[slot] !== undefined) return
    if (fallback === undefined) missing.push(fn.code.variables[slot] ?? '')
    else places[slot] = fallback
  })
  if (missing.length === 0) return
  const s = missing.length === 1 ? '' : 's'
  throw new StarlarkError(
    `function ${fn.name} missing ${missing.length} argument${s} (${missing.join(', ')})`,
  )
}
