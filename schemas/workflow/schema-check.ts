/**
 * Checks values against the JSON Schemas in workflows. No other file compiles or evaluates these schemas.
 *
 * A check spends units of work (about 100 ns each) from the caller's budget. It spends at least one unit for each
 * schema applied to each part of the value, which limits recursion, long lists and long strings. Patterns are matched
 * in linear time; `uniqueItems` is linear too.
 * Source: JSON Schema 2020-12; Ajv, user-defined keywords.
 */
import type { Ajv2020, ErrorObject, ValidateFunction } from 'ajv/dist/2020.js'
import { canonicalJson } from '../canonical.ts'
import { loadPart } from '../parts/load.ts'
import { type Fields, fieldsOf, isFields } from '../validation/fields.ts'
import { compilePattern } from './pattern.ts'
import { mapSchemas } from './schema-parts.ts'

/** Spends units from a budget. Throws when the budget has been used up. */
export type Spend = (units: number) => void

const maxCached = 200
const cached = new Map<string, SchemaCheck>()

/** Returns the check of a valid schema (json-schema.ts). Equal schemas share a check. */
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

/** Number of units within which a check collects all errors. A check that takes longer stops at its first error. */
const allErrorsUnits = 50_000

/** Stops the collection of errors. */
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
   * Returns the mismatches of a value as `path rule`, at most ten lines, without values. `at` is a JSON pointer to the
   * part of the schema to check against. Rethrows errors from `spend`.
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
      // Stack overflow: the combination of a value and a schema can be too deep, even though each is within its limits.
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

/** Whether to collect all errors in a value or only the first. */
type Errors = 'all' | 'first'

const workflowKey = 'workflow'

const spendNothing: Spend = () => {}

interface Meter {
  spend: Spend
}

const weightKey = 'x-gatehouse-weight'

/** Long enums take longer to compare. */
function weightOf(own: Fields): number {
  return 1 + Math.floor(JSON.stringify(own).length / 64)
}

type Library = typeof import('../parts/schema-library.ts')

/** The compiler is 0.13 MB of script, so it is loaded on first use. */
let library: Library | undefined

function makeAjv(meter: Meter, errors: Errors): Ajv2020 {
  library ??= loadPart('schema-library') as Library
  const ajv = new library.Ajv2020({
    strict: false,
    logger: false,
    allErrors: errors === 'all',
    // The schema was validated before (json-schema.ts).
    meta: false,
    validateSchema: false,
    code: { regExp: regExpFor(meter) },
  })
  library.addAllFormats(ajv)
  // The package's own regular expression takes quadratic time.
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
  // `code` is for schemas that are compiled to modules, which does not happen here.
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
