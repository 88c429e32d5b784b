/**
 * Limits the work, text size and nesting of template evaluation. Operators write the templates, but the data comes from
 * callers and backends. Several expansions can share a meter.
 */
import { EvaluationError } from './value.ts'

export interface TemplateLimits {
  /** Maximum size of generated text in bytes. */
  readonly maxBytes: number
  /**
   * Maximum number of work units, which take about 100 ns each. A unit is one visited value, or 64 characters written
   * or compared.
   */
  readonly maxWork: number
}

export const defaultLimits: TemplateLimits = { maxBytes: 10 * 1024 * 1024, maxWork: 1_000_000 }

/** Maximum nesting of template calls and written values. */
const maxDepth = 100
const charactersPerUnit = 64

/**
 * Thrown when the work limit is exceeded. Unlike an EvaluationError, this error does not mean that the template is
 * wrong.
 */
export class WorkLimitError extends Error {
  constructor() {
    super('work limit exceeded')
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

  /** Number of units of work spent so far. */
  get spent(): number {
    return this.#maxWork - this.#left
  }

  /** Spends units of work. Throws WorkLimitError when the budget is exhausted. */
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

/** A text buffer with a metered size. */
export class MeteredOutput {
  readonly meter: TemplateMeter
  #bytes = 0
  text = ''

  constructor(meter: TemplateMeter) {
    this.meter = meter
  }

  /** Appends text. Throws EvaluationError when the text becomes too long. */
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
