/**
 * Checks values against the JSON Schemas in workflows. No other file compiles or evaluates these schemas.
 *
 * A check spends units of work (about 100 ns each) from the caller's budget. A check spends at least one unit for each
 * schema applied to each part of the value, which limits recursion, long lists and long strings. Patterns and
 * `uniqueItems` are checked in linear time.
 * Source: JSON Schema 2020-12; Ajv, user-defined keywords.
 */
import type { Ajv2020, ErrorObject, ValidateFunction } from 'ajv/dist/2020.js'
import { canonicalJson } from '../canonical.ts'
import { loadPart } from '../parts/load.ts'
import { type Fields, fieldsOf, isFields } from '../validation/fields.ts'
import { compilePattern } from './pattern.ts'
import { mapSchemas } from './schema-parts.ts'

/** Spends units from a budget. Throws when the budget is exhausted. */
export type Spend = (units: number) => void

const maxCached = 200
const cached = new Map<string, SchemaCheck>()

/** Returns the check for a schema that json-schema.ts has accepted. Equal schemas share one check. */
export function schemaCheck(schema: Fields): SchemaCheck {
  const text = JSON.stringify(schema)
  const known = cached.get(text)
  if (known) return known
  const made = new SchemaCheck(schema)
  const [oldest] = cached.keys()
  if (cached.size >= maxCached && oldest !== undefined) cached.delete(oldest)
  cached.set(text, made)
  return made
}

/** Budget for collecting all errors. A check that exceeds this budget stops at its first error. */
const allErrorsUnits = 50_000

/** Thrown to stop collecting errors. */
const enough = new Error('enough')

export class SchemaCheck {
  /** True when checking even a small value can take a long time. */
  readonly isHeavy: boolean
  readonly #schema: Fields
  readonly #meter: Meter = { spend: spendNothing }
  readonly #engines = new Map<Errors, Ajv2020>()

  constructor({ $schema: _, ...schema }: Fields) {
    this.#schema = mapSchemas(schema, (one, own) => ({ ...one, [weightKey]: weightOf(own) })) as Fields
    this.isHeavy = hasHeavyPattern(schema)
  }

  /** Compiles the schema now instead of at the first check. Throws an Error with the reason. */
  compile(): void {
    this.#validator('', 'all')
  }

  /**
   * Returns the mismatches of a value in the form `path rule`, at most ten lines, without values. `at` is a JSON
   * pointer to the part of the schema to check against. Rethrows errors from `spend`.
   */
  violations(value: unknown, spend: Spend, at = ''): readonly string[] {
    let left = allErrorsUnits
    try {
      return this.#run(this.#validator(at, 'all'), value, (units) => {
        spend(units)
        left -= units
        if (left < 0) throw enough
      })
    } catch (error) {
      if (error !== enough) throw error
      return this.#run(this.#validator(at, 'first'), value, spend)
    }
  }

  #run(validate: ValidateFunction, value: unknown, spend: Spend): readonly string[] {
    this.#meter.spend = spend
    try {
      return validate(value) ? [] : describe(validate.errors)
    } catch (error) {
      // Handles a stack overflow: a value and a schema that are each within their limits can be too deep in
      // combination.
      if (error instanceof RangeError) return ['/ is too deep to be checked against the schema']
      throw error
    } finally {
      this.#meter.spend = spendNothing
      validate.errors = null
    }
  }

  #validator(at: string, errors: Errors): ValidateFunction {
    const engine = this.#engines.get(errors) ?? makeAjv(this.#meter, errors)
    if (!this.#engines.has(errors)) {
      engine.addSchema(this.#schema, workflowKey)
      this.#engines.set(errors, engine)
    }
    const found = engine.getSchema(`${workflowKey}#${at}`)
    if (!found) throw new Error(`the schema has no part ${at}`)
    return found as ValidateFunction
  }
}

/** Selects whether a check collects all errors in a value or only the first error. */
type Errors = 'all' | 'first'

const workflowKey = 'workflow'

const spendNothing: Spend = () => {}

interface Meter {
  spend: Spend
}

const weightKey = 'x-gatehouse-weight'

/** Charges more for long enums, which take longer to compare. */
function weightOf(own: Fields): number {
  return 1 + Math.floor(JSON.stringify(own).length / 64)
}

type Library = typeof import('../parts/schema-library.ts')

/** Loads the compiler on first use, because its script is 0.13 MB. */
let library: Library | undefined

function makeAjv(meter: Meter, errors: Errors): Ajv2020 {
  library ??= loadPart('schema-library') as Library
  const ajv = new library.Ajv2020({
    strict: false,
    logger: false,
    allErrors: errors === 'all',
    // Skips schema validation, which json-schema.ts has already done.
    meta: false,
    validateSchema: false,
    code: { regExp: regExpFor(meter) },
  })
  library.addAllFormats(ajv)
  // Replaces the format of the package, because its regular expression takes quadratic time.
  ajv.addFormat('url', (text) => text.length <= 2048 && URL.canParse(text))
  ajv.addKeyword({ keyword: weightKey, compile: (weight: number) => (data) => spendOn(data, weight, meter) })
  ajv.removeKeyword('uniqueItems')
  ajv.addKeyword({
    keyword: 'uniqueItems',
    type: 'array',
    schemaType: 'boolean',
    validate: (wanted: boolean, items: readonly unknown[]) => !wanted || areUnique(items, meter),
    error: { message: 'must NOT have duplicate items' },
  })
  return ajv
}

function spendOn(data: unknown, weight: number, { spend }: Meter): true {
  spend(weight)
  if (typeof data === 'string') spend(Math.floor(data.length / 16))
  else if (Array.isArray(data)) spend(Math.floor(data.length / 4))
  else if (isFields(data)) spend(Object.keys(data).length)
  return true
}

function areUnique(items: readonly unknown[], { spend }: Meter): boolean {
  const seen = new Set<string>()
  for (const item of items) {
    const text = canonicalJson(item)
    spend(2 + Math.floor(text.length / 8))
    if (seen.has(text)) return false
    seen.add(text)
  }
  return true
}

function regExpFor(meter: Meter) {
  const make = (source: string) => {
    const pattern = compilePattern(source)
    return {
      test(text: string) {
        meter.spend(1 + pattern.cost(text))
        return pattern.test(text)
      },
    }
  }
  // The cast omits `code`, which ajv uses only to compile schemas to modules.
  return Object.assign(make, { code: '' })
}

function hasHeavyPattern(schema: Fields): boolean {
  let found = false
  mapSchemas(schema, (one) => {
    found ||= patternsOf(one).some((pattern) => compilePattern(pattern).isHeavy)
    return one
  })
  return found
}

/** Returns the regular expressions in one schema. */
export function patternsOf({ pattern, patternProperties }: Fields): readonly string[] {
  return [...(typeof pattern === 'string' ? [pattern] : []), ...Object.keys(fieldsOf(patternProperties))]
}

/** Returns paths and rules, never values. */
function describe(errors: readonly ErrorObject[] | null | undefined): string[] {
  return (errors ?? []).slice(0, 10).map(({ instancePath, message, params }) => {
    const extra: unknown = params['additionalProperty'] ?? params['unevaluatedProperty']
    const which = typeof extra === 'string' ? ` (${JSON.stringify(extra.slice(0, 80))})` : ''
    const path = instancePath === '' ? '/' : instancePath.slice(0, 500)
    return `${path} ${message ?? 'is not valid'}${which}`
  })
}
