/** The names available in every script. Source: Starlark specification, "Built-in constants and functions". */
import { conversions } from './conversion.ts'
import { sequenceFunctions } from './sequence.ts'
import { reflectionFunctions } from './reflection.ts'
import { Builtin, type NativeCall, type StarlarkValue, type ScriptWork } from '../values/values.ts'

const functionTable: Readonly<Record<string, (call: NativeCall) => StarlarkValue | ScriptWork>> = {
  ...conversions,
  ...sequenceFunctions,
  ...reflectionFunctions,
}

export const universalNames: ReadonlyMap<string, StarlarkValue> = new Map<string, StarlarkValue>([
  ['None', null],
  ['True', true],
  ['False', false],
  ...Object.entries(functionTable).map(([name, run]): [string, StarlarkValue] => [
    name,
    new Builtin(name, run),
  ]),
])
