/**
 * Reads from the environment how often the proxy retries a failed renewal of its login. An invalid value causes a
 * warning and is replaced by the default, because a typo must not prevent the proxy from starting.
 * Source: "Environment" of the reference behavior of docs/reference/specification/proxy-command.md.
 */
import { timerMs } from '../../../schemas/index.ts'
import { type Environment, readVariable, type DocumentedVariable, variables } from './env.ts'

/** Times in milliseconds. */
export interface RenewalPace {
  readonly initialMs: number
  readonly maxIntervalMs: number
  readonly maxTries: number
  readonly maxElapsedMs: number
  readonly tickMs: number
  /** How long retries continue after the first failure. */
  readonly giveUpMs: number
}

export function renewalPace(env: Environment, warnings: string[]): RenewalPace {
  function read(
    variable: DocumentedVariable,
    rule: string,
    parse: (text: string) => number,
    byDefault: number,
  ): number {
    const text = readVariable(env, variable)
    if (text === undefined) return byDefault
    try {
      const value = parse(text)
      if (value > 0) return value
    } catch {
      // The code below reports the error.
    }
    warnings.push(`${variable.name}: must be ${rule}; the default is used`)
    return byDefault
  }
  const duration = (variable: DocumentedVariable, byDefault: number): number =>
    read(variable, 'a duration such as 30s, 1m or 2m30s', timerMs, byDefault)
  const count = (text: string): number => (/^\d{1,4}$/.test(text) ? Number(text) : 0)
  return {
    initialMs: duration(variables.refreshInitialInterval, 10_000),
    maxIntervalMs: duration(variables.refreshMaxInterval, 120_000),
    maxTries: read(variables.refreshMaxTries, 'a whole number from 1 to 9999', count, 5),
    maxElapsedMs: duration(variables.refreshMaxElapsed, 300_000),
    tickMs: duration(variables.retryTick, 600_000),
    giveUpMs: duration(variables.retryMaxElapsed, 86_400_000),
  }
}
