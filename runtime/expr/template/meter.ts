/**
 * Bounds of what is computed with templates: work, size of texts, nesting. A template is written by an operator, but what it
 * works on comes from callers and backends. One meter may serve several expansions.
 */
import { EvaluationError } from './value.ts'

export interface TemplateLimits {
  /** Longest text made, in bytes. */
  readonly maxBytes: number
  /**
   * Units of work, each about 100 ns: one for each value looked at, and one for every 64 characters written or compared.
   */
  readonly maxWork: number
}

export const defaultLimits: TemplateLimits = { maxBytes: 10 * 1024 * 1024, maxWork: 1_000_000 }

/** Nesting of template calls, and of values that are written. */
const maxDepth = 100
const charactersPerUnit = 64

/** More work than was allowed. Other than an EvaluationError it says nothing about the template. */
export class WorkLimitError extends Error {
  constructor() {
    super('it takes too much work')
    this.name = 'WorkLimitError'
  }
}

export class TemplateMeter {
  readonly maxBytes: number
  readonly #maxWork: number
  #left: number

  constructor({ maxBytes, maxWork }: TemplateLimits) {
    this.maxBytes = maxBytes
    this.#maxWork = maxWork
    this.#left = maxWork
  }

  /** Units of work that were spent. */
  get spent(): number {
    return this.#maxWork - this.#left
  }

  /** Throws WorkLimitError when the budget is used up. */
  spend(units = 1): void {
    this.#left -= units
    if (this.#left < 0) throw new WorkLimitError()
  }

  spendText(characters: number): void {
    this.spend(1 + Math.floor(characters / charactersPerUnit))
  }

  checkDepth(depth: number): void {
    if (depth > maxDepth) throw new EvaluationError('depth limit exceeded')
  }
}

/** A text that is being written. */
export class MeteredOutput {
  readonly meter: TemplateMeter
  #bytes = 0
  text = ''

  constructor(meter: TemplateMeter) {
    this.meter = meter
  }

  /** Throws EvaluationError when the text becomes too long. */
  write(text: string): void {
    this.meter.spendText(text.length)
    this.#bytes += text.length > this.meter.maxBytes ? text.length : Buffer.byteLength(text)
    if (this.#bytes > this.meter.maxBytes) throw new EvaluationError('template output too large')
    this.text += text
  }

  depth(depth: number): void {
    this.meter.checkDepth(depth)
  }
}
