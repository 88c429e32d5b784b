/**
 * Behavior shared by all programs: root command, error output and exit codes.
 *
 * Exit codes: 0 done, 1 failed, 2 invalid usage or configuration, 3 failed authentication.
 */
import { type Command, CommanderError } from 'commander'
import { GatehouseError } from '../../../schemas/index.ts'
import { CliCommand, droppedOptions } from './command.ts'
import { exitCode, printError } from './output.ts'
import { forTerminal } from './plain-text.ts'
import { version } from './self.ts'

/** The root of a command tree, without commands. */
export function rootCommand(name: string): CliCommand {
  const program = new CliCommand(name)
  program
    .version(version, '-V, --version', 'print the version')
    .showSuggestionAfterError()
    .showHelpAfterError('(run with --help for usage)')
    .enablePositionalOptions()
    .hook('preAction', (_program, action) => refuseDropped(action))
    .exitOverride()
    .configureOutput({ outputError: (text, write) => write(text.replace(/^error: /, 'Error: ')) })
  return program
}

function refuseDropped(action: Command): void {
  const words: string[] = []
  for (let at: Command | null = action; at?.parent; at = at.parent) words.unshift(at.name())
  const [first] = droppedOptions(action)
  if (first !== undefined)
    action.error(`Error: ${first}: has no effect with "${words.join(' ')}"`, { exitCode: exitCode.usage })
}

/** Runs the command line and sets the exit code. */
export async function runProgram(program: Command): Promise<void> {
  // A reader such as head that closes the pipe early does not cause an error.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(exitCode.ok)
    printError(`Error: standard output: ${error.message}`)
    process.exit(exitCode.failed)
  })
  // Ignore write errors on stderr, because they must not affect the work or the exit code.
  process.stderr.on('error', () => {})
  try {
    await program.parseAsync()
  } catch (error) {
    process.exitCode = await codeOf(error)
  }
}

/** Prints the error once and returns the exit code. */
async function codeOf(error: unknown): Promise<number> {
  // Commander has already printed its message. Help and version exit with code 0.
  if (error instanceof CommanderError) return error.exitCode === 0 ? exitCode.ok : exitCode.usage
  // The message can contain text from a server or document.
  printError(`Error: ${forTerminal(error instanceof Error ? error.message : String(error))}`)
  if (!(error instanceof GatehouseError)) return exitCode.failed
  if (error.code === 'UNAUTHENTICATED') return exitCode.authentication
  return error.code === 'INVALID_CONFIG' ? exitCode.usage : exitCode.failed
}
