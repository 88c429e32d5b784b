/**
 * The language, case by case: results of scripts, and errors with their location. The results were compared one by one
 * with those of the Go implementation. Where this implementation reports more (suggestions, several errors at once,
 * exact line numbers), the tables contain that.
 */
import t from 'tap'
import {
  compile,
  decode,
  execute,
  ScriptMeter,
  StarlarkError,
  universalNames,
} from '../../../runtime/expr/starlark/index.ts'
import { repr } from '../../../runtime/expr/starlark/values/print.ts'
import type { Case } from './starlark/case.ts'
import { collections } from './starlark/collections.ts'
import { numbers } from './starlark/numbers.ts'
import { programs } from './starlark/programs.ts'
import { texts } from './starlark/texts.ts'

const LIMITS = { maxSteps: 1_000_000, maxBytes: 64 * 1024 * 1024 }
const NAMES = new Set(universalNames.keys())

async function outcome(script: string): Promise<Omit<Case, 'script'>> {
  const meter = new ScriptMeter(LIMITS)
  const logs: string[] = []
  const print = (line: string): void => void logs.push(line)
  const printed = (): { logs?: readonly string[] } => (logs.length > 0 ? { logs } : {})
  try {
    const program = compile(script, NAMES)
    const value = await execute(program, { ...LIMITS, maxWaits: 1, globals: new Map(), print }, meter)
    return { value: decode(repr(value, meter)), ...printed() }
  } catch (error) {
    if (!(error instanceof StarlarkError)) throw error
    return { error: error.describe('').slice(1), ...printed() }
  }
}

for (const [topic, cases] of Object.entries({ numbers, texts, collections, programs })) {
  t.test(`${topic}: every case of the table`, async (t) => {
    for (const { script, ...expected } of cases) t.strictSame(await outcome(script), expected, script)
  })
}
