/**
 * Limits the total cost of checking all workflows in one object. A single valid workflow is cheap; a hundred of them
 * with full schemas are not.
 */
import type { Fields } from '../validation/fields.ts'
import { countSchemas } from './schema-parts.ts'

const maxSchemas = 2000
/** Budget for checking defaults, in the unit of the workflow budgets (about 100 ns). */
const maxUnits = 1_000_000

export class CheckBudget {
  #schemas = maxSchemas
  #units = maxUnits
  #isReported = false

  /**
   * Checks one workflow. Returns false when the check exceeds the budget. The schemas of a workflow that exceeds the
   * budget do not count toward the budget for later workflows, but its work on defaults does.
   */
  attempt(check: () => void): boolean {
    const schemas = this.#schemas
    this.#isReported = false
    check()
    if (this.#isReported) this.#schemas = schemas
    return !this.#isReported
  }

  /** Charges for a schema. Returns true when the budget allows a check of the schema. */
  takeSchema(schema: Fields): boolean {
    if (this.#schemas >= 0) this.#schemas -= countSchemas(schema)
    return this.#schemas >= 0
  }

  /** Charges the budget for work on defaults. Returns true until the budget is used up. */
  takeUnits(units: number): boolean {
    this.#units -= units
    return this.#units >= 0
  }

  get hasUnits(): boolean {
    return this.#units >= 0
  }

  /**
   * Returns the violation for the field that exceeded the budget. Returns undefined for later fields of the same
   * workflow.
   */
  takeViolation(): string | undefined {
    if (this.#isReported) return undefined
    this.#isReported = true
    return this.#schemas < 0
      ? `all workflows together may have ${maxSchemas} schemas in their parameters and elicitations; this workflow exceeds the limit`
      : 'checking the defaults of all workflows is too expensive; this workflow exceeds the limit'
  }
}
