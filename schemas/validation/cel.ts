/**
 * Compiles CEL expressions and evaluates them on plain values. No other module uses the CEL library.
 *
 * Numbers: a JavaScript number is a CEL double, a bigint is a CEL int. Supports `duration`, `matches` (RE2, linear
 * time) and the standard macros, but no extension functions. A rule therefore has the same meaning in the Kubernetes
 * API server. Does no I/O.
 * Source: cel-spec; CRD rules of Kubernetes (x-kubernetes-validations).
 */
import type { CelInput } from '@bufbuild/cel'
import { GatehouseError } from '../errors.ts'
import { loadPart } from '../parts/load.ts'
import { costOf } from './cel-cost.ts'

/**
 * Evaluates the expression with the given variables. Throws GatehouseError INVALID_CONFIG when the evaluation fails.
 */
export type CelProgram = (variables: Readonly<Record<string, unknown>>) => unknown

type Library = typeof import('../parts/cel-library.ts')

let loaded: { readonly library: Library; readonly environment: ReturnType<Library['celEnv']> } | undefined

/** Loads the library on first use, because its script is 0.5 MB. */
function cel() {
  if (!loaded) {
    const library = loadPart('cel-library') as Library
    loaded = { library, environment: library.celEnv() }
  }
  return loaded
}

/**
 * Compiles a CEL expression. Throws GatehouseError INVALID_CONFIG with the position of a syntax error. Results are
 * JavaScript values: booleans, strings, numbers, bigint for int, arrays and Maps.
 */
export function compileCel(expression: string): CelProgram {
  return programOf(parsed(expression))
}

/**
 * Maximum cost of one evaluation: far more than a search through a caller's groups, and at most a tenth of a second.
 */
const maxCost = 200_000

/**
 * Compiles a user's expression for untrusted data. Throws INVALID_CONFIG as compileCel does, and also when a single
 * evaluation could take too long.
 */
export function compileBoundedCel(expression: string): CelProgram {
  const tree = parsed(expression)
  if (costOf(tree.expr) <= maxCost) return programOf(tree)
  throw new GatehouseError('INVALID_CONFIG', {
    detail:
      'too expensive: nested loops over claims are not supported; replace one of the lists with a literal',
  })
}

type Tree = ReturnType<Library['parse']>

function programOf(tree: Tree): CelProgram {
  const { library, environment } = cel()
  const program = library.plan(environment, tree)
  return (variables) => {
    const result = program(inputs(variables))
    if (library.isCelError(result)) {
      throw new GatehouseError('INVALID_CONFIG', {
        detail: `CEL evaluation failed: ${firstLine(result.message)}`,
      })
    }
    return toPlain(result)
  }
}

function inputs(variables: Readonly<Record<string, unknown>>): Record<string, CelInput> {
  return Object.fromEntries(Object.entries(variables).map(([name, value]) => [name, toInput(value)]))
}

/** Converts JSON values and bigint. Keeps a Map unchanged. Throws GatehouseError INVALID_CONFIG for anything else. */
function toInput(value: unknown): CelInput {
  switch (typeof value) {
    case 'string':
    case 'number':
    case 'boolean':
    case 'bigint':
      return value
    case 'object':
      if (value === null || value instanceof Map) return value
      if (Array.isArray(value)) return value.map(toInput)
      return new Map(Object.entries(value).map(([name, member]) => [name, toInput(member)]))
    default:
      throw new GatehouseError('INVALID_CONFIG', { detail: `CEL does not support a ${typeof value}` })
  }
}

function parsed(expression: string): Tree {
  const { library, environment } = cel()
  try {
    const tree = library.parse(expression)
    library.plan(environment, tree)
    return tree
  } catch (cause) {
    const text = cause instanceof Error ? firstLine(cause.message) : 'unknown error'
    throw new GatehouseError('INVALID_CONFIG', { detail: `not a CEL expression: ${text}`, cause })
  }
}

function firstLine(text: string): string {
  return (text.split('\n')[0] ?? '').slice(0, 200)
}

function toPlain(value: unknown): unknown {
  const { isCelUint, isCelList, isCelMap } = cel().library
  if (isCelUint(value)) return value.value
  if (isCelList(value)) return [...value].map(toPlain)
  if (isCelMap(value)) return new Map([...value].map(([key, item]) => [toPlain(key), toPlain(item)]))
  return value
}
