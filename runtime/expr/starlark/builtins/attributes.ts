/** Implements `x.name`: the built-in types' methods. */
import { dictMethods, listMethods } from './methods-collections.ts'
import { stringMethods } from './methods-string.ts'
import { Bytes, TextView } from '../values/scalars.ts'
import { Builtin, type NativeCall, Dict, List, type StarlarkValue, typeOf } from '../values/values.ts'
import { StarlarkError } from '../errors.ts'
import { type ScriptMeter, sizeOf } from '../vm/meter.ts'
import { likely } from '../compiler/spelling.ts'
import { type Methods, positional } from './arguments.ts'

const bytesMethods: Methods<Bytes> = {
  elems({ data }, call) {
    positional(call, 0, 0)
    return new TextView(data, 'elems', { ofBytes: true })
  },
}

function methodsOf(value: StarlarkValue): {
  readonly names: readonly string[]
  find(name: string): ((call: NativeCall) => StarlarkValue) | undefined
} {
  if (typeof value === 'string') return table(stringMethods, value)
  if (value instanceof List) return table(listMethods, value)
  if (value instanceof Dict) return table(dictMethods, value)
  if (value instanceof Bytes) return table(bytesMethods, value)
  return { names: [], find: () => undefined }
}

function table<Receiver>(methods: Methods<Receiver>, receiver: Receiver) {
  return {
    names: Object.keys(methods),
    find(name: string) {
      const method = Object.hasOwn(methods, name) ? methods[name] : undefined
      return method && ((call: NativeCall) => method(receiver, call))
    },
  }
}

/** Returns a value's attribute names, sorted. */
export function attributeNames(value: StarlarkValue): string[] {
  return [...methodsOf(value).names].sort()
}

/** Returns an attribute, or undefined when the value does not have that attribute. */
export function findAttribute(
  value: StarlarkValue,
  name: string,
  meter: ScriptMeter,
): StarlarkValue | undefined {
  const method = methodsOf(value).find(name)
  if (!method) return undefined
  meter.allocate(sizeOf.function)
  return new Builtin(name, method, typeOf(value))
}

export function getAttribute(value: StarlarkValue, name: string, meter: ScriptMeter): StarlarkValue {
  const found = findAttribute(value, name, meter)
  if (found !== undefined) return found
  const guess = likely(name, methodsOf(value).names)
  const hint = guess === undefined ? indexHint(value, name) : ` (did you mean .${guess}?)`
  throw new StarlarkError(`${typeOf(value)} has no .${name} field or method${hint}`)
}

/** Adds a hint, because users of other languages expect to access dict entries as attributes. */
function indexHint(value: StarlarkValue, name: string): string {
  return value instanceof Dict ? `; entries are read with ["${name}"]` : ''
}
