/**
 * Meters a script's use of computation steps and memory.
 *
 * One meter covers a whole script, including the functions that it runs concurrently. A step is one instruction of the
 * machine, or one element visited by a built-in function. Memory is the estimated total of all allocated bytes. The
 * meter never credits freed memory, so the total is an upper bound on the live memory.
 */
import { LimitError } from '../errors.ts'

export interface StarlarkLimits {
  readonly maxSteps: number
  readonly maxBytes: number
}

/**
 * Estimated sizes of script values. The sizes are close to the sizes in V8, because a heap overflow in a worker can
 * crash the whole process before the meter throws. `firstElement` is the capacity that a list allocates for its first
 * element. `function` is also used as the size of a range.
 */
export const sizeOf = {
  text: 24,
  element: 16,
  entry: 144,
  object: 64,
  dict: 240,
  firstElement: 136,
  float: 40,
  function: 112,
} as const

/** Number of characters that a native search visits in the time that one step takes. */
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

  /** Charges for steps. Throws LimitError when no steps are left. */
  step(count: number): void {
    this.steps += count
    if (this.steps > this.maxSteps) throw tooManySteps()
  }

  /** Charges for memory. Throws LimitError when no memory is left. */
  allocate(bytes: number): void {
    this.bytes += bytes
    if (this.bytes > this.maxBytes) throw new LimitError('Starlark computation cancelled: out of memory')
  }

  /** Charges for a new string. */
  text(length: number): void {
    this.allocate(sizeOf.text + length)
    this.step(Math.floor(length / textPerStep))
  }

  /**
   * Charges a concatenation. V8 shares the longer string instead of copying it, so building a string piece by piece
   * costs about as much as the pieces. The charge for the shared string covers the copy that V8 makes when the string
   * is read.
   */
  joined(a: number, b: number): void {
    const [shorter, longer] = [Math.min(a, b), Math.max(a, b)]
    this.allocate(sizeOf.text + shorter + Math.floor(longer / sharedPerByte))
    this.step(Math.floor(shorter / textPerStep) + Math.floor(longer / searchPerStep))
  }

  /** Charges for a new list, tuple or argument list. */
  elements(count: number): void {
    this.allocate(sizeOf.object + sizeOf.element * count)
    this.step(count)
  }

  /** Charges for an element appended to a list of this length. */
  appended(length: number): void {
    this.allocate(length === 0 ? sizeOf.firstElement + sizeOf.element : sizeOf.element)
  }

  /**
   * Charges for searching for one string in another. In the worst case, a native search takes time proportional to the
   * product of the lengths.
   */
  search(length: number, needle: number): void {
    this.step(Math.floor(length / textPerStep) + Math.floor((length * needle) / searchPerStep))
  }
}

export function tooManySteps(): LimitError {
  return new LimitError('Starlark computation cancelled: too many steps')
}
