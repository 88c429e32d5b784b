/**
 * Converts a tool call's arguments to attributes: `arg_<name>` with the value of a string, number or boolean, and
 * `arg_<name>_present` for a list or an object.
 *
 * Converts only the names that policies read. Reports an attribute as unusable if a policy and a backend could
 * interpret the attribute differently. A call is denied if a policy reads an unusable attribute. The following cannot
 * be used: numbers that Cedar cannot represent, long strings, two arguments for one attribute, and names that differ
 * only in case, which some servers treat as equal.
 */
import type { CedarValue } from '../../schemas/cedar/index.ts'
import { GatehouseError } from '../../schemas/index.ts'
import { JsonError, JsonObject } from '../mcp/index.ts'
import { Budget, maxTextLength, numberTextToCedar, toCedar } from './cedar/values.ts'

export const argumentPrefix = 'arg_'

export interface RequestAttributes {
  readonly attributes: Readonly<Record<string, CedarValue>>
  /** Request attributes whose values Cedar cannot represent. */
  readonly unusable: ReadonlySet<string>
}

/** The attributes that policies read. */
export interface WantedArguments {
  has(name: string): boolean
  /** Returns the requested names that differ from `name` only in case. */
  variantsOf(name: string): readonly string[]
}

/**
 * Throws INVALID_PARAMS when the arguments are not an object or contain a duplicate member. `raw` is JSON text;
 * `maxText` is the length of the longest string that policies receive.
 */
export function argumentAttributes(raw: Buffer, wanted: WantedArguments, maxText: number): RequestAttributes {
  const attributes = new Map<string, CedarValue>()
  const unusable = new Set<string>()
  const budget = new Budget(maxText)
  for (const [argument, json] of membersOf(raw)) {
    const isContainer = json[0] === 0x7b || json[0] === 0x5b
    const name = `${argumentPrefix}${argument}${isContainer ? '_present' : ''}`
    for (const variant of wanted.variantsOf(name)) unusable.add(variant)
    if (!wanted.has(name)) continue
    // Null counts as absent.
    const value = isContainer ? true : scalar(json, budget)
    if (value === null) continue
    const isUsable = value !== undefined && budget.take(name.length)
    if (!isUsable || attributes.has(name) || !name.isWellFormed()) unusable.add(name)
    else attributes.set(name, value)
  }
  return { attributes: Object.fromEntries(attributes), unusable }
}

function membersOf(raw: Buffer): [string, Buffer][] {
  try {
    return new JsonObject(raw).entries()
  } catch (cause) {
    if (!(cause instanceof JsonError)) throw cause
    throw new GatehouseError('INVALID_PARAMS', {
      detail: 'Invalid params: arguments must be an object with unique member names',
      cause,
    })
  }
}

function scalar(json: Buffer, budget: Budget): CedarValue | undefined {
  // An escaped character takes at most six bytes.
  if (json.length > 6 * maxTextLength) return undefined
  const text = json.toString()
  if (text === 'null') return null
  return /^[-\d]/.test(text) ? numberTextToCedar(text) : toCedar(JSON.parse(text), budget)
}

/** Returns the argument names that policies read; `all` includes every name. */
export function wantedNames(names: ReadonlySet<string>, all: boolean): WantedArguments {
  const folded = Map.groupBy(names, fold)
  return {
    has: (name) => all || names.has(name),
    variantsOf: (name) => (names.has(name) ? [] : (folded.get(fold(name)) ?? [])),
  }
}

/** Folds a name's case. Converts to upper and lower case, because some letters are equal only in upper case. */
function fold(name: string): string {
  return name.toUpperCase().toLowerCase()
}
