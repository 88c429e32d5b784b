/** The names that every script knows. Source: Starlark specification, "Built-in constants and functions". */
import { CONVERSIONS } from './conversion.ts'
import { SEQUENCES } from './sequence.ts'
import { REFLECTION } from './reflection.ts'
import { Builtin, type Call, type StarlarkValue, type Work } from '../values/values.ts'

const FUNCTIONS: Readonly<Record<string, (call: Call) => StarlarkValue | Work>> = {
  ...CONVERSIONS,
  ...SEQUENCES,
  ...REFLECTION,
}

export const UNIVERSE: ReadonlyMap<string, StarlarkValue> = new Map<string, StarlarkValue>([
  ['None', null],
  ['True', true],
  ['False', false],
  ...Object.entries(FUNCTIONS).map(([name, run]): [string, StarlarkValue] => [name, new Builtin(name, run)]),
])
