/** Reads the arguments of built-in functions, and reports invalid arguments. */
import { StarlarkError } from '../errors.ts'
import { type NativeCall, type StarlarkValue, typeOf } from '../values/values.ts'
import { toIndex } from '../values/numbers.ts'
import { likely } from '../compiler/spelling.ts'

/**
 * Returns the arguments, passed by position or by name, in the order of `names`. A name that ends in `?` is optional:
 * the value of an absent argument is undefined. Throws for missing, extra and unknown arguments.
 */
export function unpack(call: NativeCall, ...names: readonly string[]): (StarlarkValue | undefined)[] {
  const plain = names.map((name) => name.replace('?', ''))
  if (call.args.length > names.length)
    throw failure(call, `got ${call.args.length} arguments, want at most ${names.length}`)
  const values: (StarlarkValue | undefined)[] = [...call.args]
  values.length = names.length
  for (const [name, value] of call.named) {
    const at = plain.indexOf(name)
    if (at < 0) {
      const guess = likely(name, plain)
      const hint = guess === undefined ? '' : ` (did you mean ${guess}?)`
      throw failure(call, `unexpected keyword argument ${JSON.stringify(name)}${hint}`)
    }
    if (values[at] !== undefined)
      throw failure(call, `got multiple values for keyword argument ${JSON.stringify(name)}`)
    values[at] = value
  }
  names.forEach((name, i) => {
    if (values[i] === undefined && !name.endsWith('?')) throw failure(call, `missing argument for ${name}`)
  })
  return values
}

/** Returns positional-only arguments. */
export function positional(call: NativeCall, least: number, most: number): readonly StarlarkValue[] {
  if (call.named.length > 0) throw failure(call, 'unexpected keyword arguments')
  const { length } = call.args
  if (length >= least && length <= most) return call.args
  const want = least === most ? String(most) : length < least ? `at least ${least}` : `at most ${most}`
  throw failure(call, `got ${length} arguments, want ${want}`)
}

export function failure(call: NativeCall, message: string): StarlarkError {
  return new StarlarkError(`${call.name}: ${message}`)
}

function mismatch(call: NativeCall, value: StarlarkValue, want: string, parameter: string): StarlarkError {
  return failure(call, `for parameter ${parameter}: got ${typeOf(value)}, want ${want}`)
}

export function asText(call: NativeCall, value: StarlarkValue | undefined, parameter: string): string {
  if (typeof value !== 'string') throw mismatch(call, value ?? null, 'string', parameter)
  return value
}

/** Returns a machine-sized int. */
export function asInt(call: NativeCall, value: StarlarkValue | undefined, parameter: string): number {
  if (value === undefined || (typeof value !== 'number' && typeof value !== 'bigint'))
    throw mismatch(call, value ?? null, 'int', parameter)
  return toIndex(value, `${call.name}: for parameter ${parameter}`)
}

export function asBool(call: NativeCall, value: StarlarkValue | undefined, parameter: string): boolean {
  if (value === undefined) return false
  if (typeof value !== 'boolean') throw mismatch(call, value, 'bool', parameter)
  return value
}

export function asCallable(
  call: NativeCall,
  value: StarlarkValue | undefined,
  parameter: string,
): StarlarkValue {
  if (!isCallable(value)) throw mismatch(call, value ?? null, 'callable', parameter)
  return value ?? null
}

export function isCallable(value: StarlarkValue | undefined): boolean {
  const type = value === undefined ? '' : typeOf(value)
  return type === 'function' || type === 'builtin_function_or_method'
}

/** A method of one type. */
export type Method<Receiver> = (receiver: Receiver, call: NativeCall) => StarlarkValue
export type Methods<Receiver> = Readonly<Record<string, Method<Receiver>>>
