/** Code shared by all forms of the proxy command: flags from the flag table, and the report of a failed login. */
import { type Command, Option } from 'commander'
import { GatehouseError } from '../../../schemas/index.ts'
import { type FlagRow, proxyFlags, variables } from '../../config/index.ts'
import { networkFailureText, knownFailure } from '../../net/index.ts'
import { serverWords } from '../../oauth/index.ts'
import type { RootLog } from '../../observe/index.ts'
import { exitCode, printError } from '../terminal/output.ts'
import { forTerminal } from '../terminal/plain-text.ts'
import { stoppedExitCode } from '../terminal/stop.ts'
import { collect } from '../terminal/options.ts'

/** Adds the rows of the flag table to the command. `only` filters the rows. */
export function addProxyFlags(command: Command, only: (row: FlagRow) => boolean = () => true): void {
  for (const row of Object.values(proxyFlags)) {
    if (!only(row)) continue
    const value = 'value' in row ? ` <${row.value}>` : ''
    const byDefault = 'default' in row ? ` (default: ${row.default})` : ''
    const option = new Option(`${row.flag}${value}`, row.help + byDefault).helpGroup(`${row.group}:`)
    if (row.kind === 'list' || row.kind === 'repeat') option.argParser(collect)
    // Only for completion. The settings validate this value together with all other values.
    if ('values' in row) option.argChoices = [...row.values]
    command.addOption(option)
  }
}

/** Returns the help section for the proxy command's variables. */
export function environmentHelp(): string {
  const rows = Object.values(variables).map(({ name, meaning }) => `  ${name}\n      ${meaning}`)
  return `\nEnvironment:\n${rows.join('\n')}\n`
}

/** True when TARGET is a URL; otherwise it is the name of a resource. */
export function isUrl(target: string): boolean {
  return /^[a-z][a-z0-9+.-]*:\/\//i.test(target)
}

/** Reports a failed login and returns the exit code. */
export function loginFailed(error: unknown, stop: AbortSignal, log: RootLog): number {
  log.flush()
  if (stop.aborted) {
    printError('Error: stopped during the login')
    return stoppedExitCode(stop)
  }
  printError(
    `Error: failed to authenticate to remote server: ${error instanceof Error ? error.message : String(error)}${networkError(error)}`,
  )
  const words = serverWords(error)
  if (words !== undefined) printError(`Message from the authorization server: ${forTerminal(words)}`)
  const misconfigured = error instanceof GatehouseError && error.code === 'INVALID_CONFIG'
  return misconfigured ? exitCode.usage : exitCode.authentication
}

/** Returns the underlying network error, such as a name that does not resolve, or ''. */
function networkError(error: unknown): string {
  const failure = knownFailure(error)
  return failure === undefined ? '' : `: ${networkFailureText(failure)}`
}
