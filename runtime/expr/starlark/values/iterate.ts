/**
 * Iterates over sequences. A list or dict cannot change while it is being iterated over, so every iteration must be
 * closed.
 * Source: Starlark specification, "Iterables".
 */
import { Range, TextView } from './scalars.ts'
import { Dict, List, type StarlarkValue, Tuple, typeOf } from './values.ts'
import { StarlarkError } from '../errors.ts'
import type { ScriptMeter } from '../vm/meter.ts'
import { points } from './text.ts'

export interface Iteration {
  next(): StarlarkValue | undefined
  close(): void
}

const nothing = (): void => {}

/** Returns undefined for values that are not sequences. */
export function iterate(value: StarlarkValue): Iteration | undefined {
  if (value instanceof List) {
    value.iterating++
    return { next: nextOf(value.items), close: () => void value.iterating-- }
  }
  if (value instanceof Dict) {
    value.iterating++
    const keys = value.keys()
    const next = (): StarlarkValue | undefined => {
      const found = keys.next()
      return found.done === true ? undefined : found.value
    }
    return { next, close: () => void value.iterating-- }
  }
  if (value instanceof Tuple) return { next: nextOf(value.items), close: nothing }
  if (value instanceof Range) {
    let at = 0
    return { next: () => (at < value.length ? value.at(at++) : undefined), close: nothing }
  }
  return value instanceof TextView ? { next: nextPart(value), close: nothing } : undefined
}

function nextOf(items: readonly StarlarkValue[]): () => StarlarkValue | undefined {
  let at = 0
  return () => (at < items.length ? items[at++] : undefined)
}

function nextPart({ text, method, ofBytes }: TextView): () => StarlarkValue | undefined {
  if (method === 'elems' || method === 'elem_ords') {
    let at = 0
    const ords = ofBytes || method === 'elem_ords'
    return () => {
      if (at >= text.length) return undefined
      const i = at++
      return ords ? text.charCodeAt(i) : text[i]
    }
  }
  const parts = points(text)
  let at = 0
  return () => {
    const found = parts.next()
    if (found.done === true) return undefined
    const { point, length } = found.value
    const raw = text.slice(at, at + length)
    at += length
    if (method === 'codepoint_ords') return point
    return point === 0xfffd && length === 1 ? '\xef\xbf\xbd' : raw
  }
}

export function isSequence(value: StarlarkValue): boolean {
  const iteration = iterate(value)
  iteration?.close()
  return iteration !== undefined
}

/**
 * Returns the elements of a sequence and charges for them. Throws `<what>: got <type>, want iterable` for other values.
 */
export function elementsOf(value: StarlarkValue, meter: ScriptMeter, what: string): StarlarkValue[] {
  if (value instanceof List || value instanceof Tuple) {
    meter.elements(value.items.length)
    return [...value.items]
  }
  const iteration = iterate(value)
  if (!iteration) throw new StarlarkError(`${what}: got ${typeOf(value)}, want iterable`)
  const items: StarlarkValue[] = []
  try {
    for (let item = iteration.next(); item !== undefined; item = iteration.next()) {
      meter.elements(1)
      items.push(item)
    }
  } finally {
    iteration.close()
  }
  return items
}
