/**
 * What a script has used of what it may use: steps of computation, and memory.
 *
 * One meter for a whole script, everything that it starts side by side included. A step is one instruction of the
 * machine, or one element that a built-in function goes through. Memory is what was ever asked for, in estimated bytes:
 * nothing is given back, so that the sum bounds what can be alive at any time.
 */
import { LimitError } from '../errors.ts'

export interface StarlarkLimits {
  readonly maxSteps: number
  readonly maxBytes: number
}

/**
 * Estimated sizes of what scripts make, near what V8 takes: a worker whose heap is full before the meter says so can take
 * the whole process with it. `grown`: the places that a list gets with its first element; `function`: a range, too.
 */
export const sizeOf = {
  text: 24,
  element: 16,
  entry: 144,
  object: 64,
  dict: 240,
  grown: 136,
  float: 40,
  function: 112,
} as const

/** Characters that a native search goes through in the time of one step. */
const textPerStep = 256
const searchPerStep = 16_384
const sharedPerByte = 64

export class ScriptMeter {
  readonly maxSteps: number
  readonly maxBytes: number
  steps = 0
  bytes = 0

  constructor({ maxSteps, maxBytes }: StarlarkLimits) {
    this.maxSteps = maxSteps
    this.maxBytes = maxBytes
  }

  /** Throws LimitError when there are no more steps. */
  step(count: number): void {
    this.steps += count
    if (this.steps > this.maxSteps) throw tooManySteps()
  }

  /** Throws LimitError when there is no more memory. */
  allocate(bytes: number): void {
    this.bytes += bytes
    if (this.bytes > this.maxBytes) throw new LimitError('Starlark computation cancelled: out of memory')
  }

  /** A new text of so many bytes. */
  text(length: number): void {
    this.allocate(sizeOf.text + length)
    this.step(Math.floor(length / textPerStep))
  }

  /**
   * A new text made of two. The longer one is shared and not copied, so that building a text piece by piece costs about
   * what the pieces cost; its part of the price pays for the copy that is made once the text is read.
   */
  joined(a: number, b: number): void {
    const [shorter, longer] = [Math.min(a, b), Math.max(a, b)]
    this.allocate(sizeOf.text + shorter + Math.floor(longer / sharedPerByte))
    this.step(Math.floor(shorter / textPerStep) + Math.floor(longer / searchPerStep))
  }

  /** A new list, tuple or argument list. */
  elements(count: number): void {
    this.allocate(sizeOf.object + sizeOf.element * count)
    this.step(count)
  }

  /** One more element for a list that has so many. */
  appended(length: number): void {
    this.allocate(length === 0 ? sizeOf.grown + sizeOf.element : sizeOf.element)
  }

  /** Looking for one text in another; native searches take the product of the lengths at worst. */
  search(length: number, needle: number): void {
    this.step(Math.floor(length / textPerStep) + Math.floor((length * needle) / searchPerStep))
  }
}

export function tooManySteps(): LimitError {
  return new LimitError('Starlark computation cancelled: too many steps')
}
