/** The names that every script knows. Source: Starlark specification, "Built-in constants and functions". */
import { CONVERSIONS } from './builtins-conversion.ts'
import { SEQUENCES } from './builtins-sequence.ts'
import { REFLECTION } from './builtins-reflection.ts'
import { Builtin, type Call, type Work } from './functions.ts'
import type { Value } from './values.ts'

const FUNCTIONS: Readonly<Record<string, (call: Call) => Value | Work>> = {
  ...CONVERSIONS,
  ...SEQUENCES,
  ...REFLECTION,
}

export const UNIVERSE: ReadonlyMap<string, Value> = new Map<string, Value>([
  ['None', null],
  ['True', true],
  ['False', false],
  ...Object.entries(FUNCTIONS).map(([name, run]): [string, Value] => [name, new Builtin(name, run)]),
])
