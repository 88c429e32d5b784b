/** Built-in functions for inspecting values, and for output and failure. */
import { asText, failure, positional, unpack } from './arguments.ts'
import { attributeNames, findAttribute, getAttribute } from './attributes.ts'
import { StarlarkError } from '../errors.ts'
import { Bytes } from '../values/scalars.ts'
import { type NativeCall, List, type StarlarkValue, typeOf } from '../values/values.ts'
import { str } from '../values/print.ts'
import { decode } from '../values/text.ts'

export const reflectionFunctions: Readonly<Record<string, (call: NativeCall) => StarlarkValue>> = {
  dir(call) {
    const names = attributeNames(positional(call, 1, 1)[0] ?? null)
    call.meter.elements(names.length)
    return new List(names)
  },
  fail(call) {
    throw new StarlarkError(`fail: ${decode(joined(call))}`)
  },
  getattr(call) {
    const [value = null, name, fallback] = positional(call, 2, 3)
    const wanted = asText(call, name, 'name')
    if (fallback !== undefined) return findAttribute(value, wanted, call.meter) ?? fallback
    try {
      return getAttribute(value, wanted, call.meter)
    } catch (error) {
      if (error instanceof StarlarkError) throw failure(call, error.message)
      throw error
    }
  },
  hasattr(call) {
    const [value = null, name] = positional(call, 2, 2)
    return findAttribute(value, asText(call, name, 'name'), call.meter) !== undefined
  },
  hash(call) {
    const [value = null] = positional(call, 1, 1)
    if (typeof value === 'string') return hashText(call, decode(value))
    if (value instanceof Bytes) return hashBytes(call, value.data)
    throw failure(call, `got ${typeOf(value)}, want string or bytes`)
  },
  print(call) {
    call.print(decode(joined(call)))
    return null
  },
  type: (call) => {
    if (call.args.length !== 1 || call.named.length > 0)
      throw failure(call, `got ${call.args.length} arguments, want exactly 1`)
    return typeOf(call.args[0] ?? null)
  },
}

/** Converts the arguments to strings and joins them with `sep`. */
function joined(call: NativeCall): string {
  const [sep = ' '] = unpack({ ...call, args: [] }, 'sep?')
  const text = call.args.map((value) => str(value, call.meter)).join(asText(call, sep, 'sep'))
  call.meter.text(text.length)
  return text
}

/** Computes a 32-bit hash over UTF-16 code units, like Java's String.hashCode. */
function hashText({ meter }: NativeCall, text: string): number {
  meter.step(Math.floor(text.length / 64))
  let hash = 0
  for (let i = 0; i < text.length; i++) hash = (Math.imul(hash, 31) + text.charCodeAt(i)) | 0
  return hash
}

/** Computes the 32-bit FNV-1a hash. */
function hashBytes({ meter }: NativeCall, data: string): number {
  meter.step(Math.floor(data.length / 64))
  let hash = 0x811c9dc5
  for (let i = 0; i < data.length; i++) hash = Math.imul(hash ^ data.charCodeAt(i), 0x01000193)
  return hash >>> 0
}
