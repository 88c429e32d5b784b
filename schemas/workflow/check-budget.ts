/**
 * What the check of all workflows of one object may cost together: a single workflow within its bounds is cheap, a hundred
 * of them with full schemas are not.
 */
import type { Fields } from '../validation/fields.ts'
import { countSchemas } from './schema-parts.ts'

const maxSchemas = 2000
/** Work for defaults, in the unit of the budgets of workflows (about 100 ns). */
const maxUnits = 1_000_000

export class CheckBudget {
  #schemas = maxSchemas
  #units = maxUnits
  #isTold = false

  /**
   * Checks one of the workflows. False when it is beyond the budget: the next ones are checked as if it were not there, but
   * the work that it took is spent.
   */
  attempt(check: () => void): boolean {
    const schemas = this.#schemas
    this.#isTold = false
    check()
    if (this.#isTold) this.#schemas = schemas
    return !this.#isTold
  }

  /** Counts a schema. True when it may be checked. */
  takeSchema(schema: Fields): boolean {
    if (this.#schemas >= 0) this.#schemas -= countSchemas(schema)
    return this.#schemas >= 0
  }

  /** Counts work on defaults. True while there was some left. */
  takeUnits(units: number): boolean {
    this.#units -= units
    return this.#units >= 0
  }

  get hasUnits(): boolean {
    return this.#units >= 0
  }

  /** What is wrong with the field at which the budget ended; undefined for those after it: one message is enough. */
  tell(): string | undefined {
    if (this.#isTold) return undefined
    this.#isTold = true
    return this.#schemas < 0
      ? `all workflows together may hold ${maxSchemas} schemas in their parameters and elicitations; this one is beyond`
      : 'the defaults of all workflows together take too much work to be checked; this one is beyond'
  }
}
