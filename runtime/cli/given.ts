/**
 * Options that were typed, and those among them that would do nothing: these are refused, so that nobody relies on them.
 */
import type { Command, Option } from 'commander'
import { invalidConfig } from '../../schemas/index.ts'

/** Options of a command that stand on the command line; defaults are not among them. */
export function givenOptions(command: Command): readonly Option[] {
  return command.options.filter((option) => isGiven(command, option.attributeName()))
}

function isGiven(command: Command, attribute: string): boolean {
  return command.getOptionValueSource(attribute) === 'cli'
}

/** An option that was given, whether it does something beside the others, and what it is for. */
export type IdleRow = readonly [attribute: string, isUsed: boolean, what: string]

/** Throws INVALID_CONFIG naming every option that was given and does nothing. */
export function refuseIdle(command: Command, rows: readonly IdleRow[]): void {
  const idle = rows.flatMap(([attribute, isUsed, what]) => {
    if (isUsed || !isGiven(command, attribute)) return []
    const option = command.options.find((one) => one.attributeName() === attribute)
    return [`${option?.long ?? attribute}: ${what}`]
  })
  if (idle.length > 0) throw invalidConfig(idle.join('\n'))
}
