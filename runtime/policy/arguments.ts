/**
 * The arguments of a tool call as attributes: `arg_<name>` with the value of a text, number or boolean,
 * `arg_<name>_present` for a list or an object.
 *
 * Only names that policies read are converted. Where a policy and a backend could read the same arguments differently,
 * the attribute is reported as unusable instead, and the call is refused when a policy asks for it: numbers that Cedar
 * cannot hold, texts that are too long, names that differ in case only (some servers take them for the same), one attribute from two arguments.
 */
import type { CedarValue } from '../../schemas/cedar/index.ts'
import { GatehouseError } from '../../schemas/index.ts'
import { JsonError, JsonObject } from '../mcp/index.ts'
import { Budget, maxTextLength, numberTextToCedar, toCedar } from './cedar/values.ts'

export const argumentPrefix = 'arg_'

export interface RequestAttributes {
  readonly attributes: Readonly<Record<string, CedarValue>>
  /** Attributes of the request whose values Cedar cannot represent. */
  readonly unusable: ReadonlySet<string>
}

/** The attributes that policies read. */
export interface WantedArguments {
  has(name: string): boolean
  /** Returns the wanted names that equal a name except for case, without the name itself. */
  variantsOf(name: string): readonly string[]
}

/**
 * Throws INVALID_PARAMS when the arguments are not an object or contain a duplicate member. `raw` is JSON text,
 * `maxText` the longest text that policies receive.
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
    // Null is treated as absent.
    const value = isContainer ? true : scalar(json, budget)
    if (value === null) continue
    const told = value !== undefined && budget.take(name.length)
    if (!told || attributes.has(name) || !name.isWellFormed()) unusable.add(name)
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
      detail: 'Invalid params: arguments must be an object whose members have different names',
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

/** The wanted names of some policies; `all` wants every name. */
export function wantedNames(names: ReadonlySet<string>, all: boolean): WantedArguments {
  const folded = Map.groupBy(names, fold)
  return {
    has: (name) => all || names.has(name),
    variantsOf: (name) => (names.has(name) ? [] : (folded.get(fold(name)) ?? [])),
  }
}

/** Compared in both cases, because some letters share only their upper case. */
function fold(name: string): string {
  return name.toUpperCase().toLowerCase()
}
