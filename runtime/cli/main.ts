#!/usr/bin/env node
/**
 * The `gatehouse` command: wires the features to one command tree. Nothing is decided here.
 *
 * Only the command that is asked for is loaded, with what it needs; of the others the name and a line for the help are
 * known.
 */
import type { CliCommand } from '../toolkit/terminal/command.ts'
import { commandsOf } from './commands.ts'
import { rootCommand, runProgram } from '../toolkit/terminal/program.ts'
const program = rootCommand('gatehouse')
program
  .description('One guarded entrance to all of a team’s MCP servers.')
  .option('--debug', 'log at debug level', false)
  .addHelpText(
    'after',
    '\nStart here:\n' +
      '  gatehouse proxy --target-uri https://mcp.example.com my-server   one remote server behind a local address\n' +
      '  gatehouse dev -f manifests/examples/quickstart                   many servers as one, from manifests',
  )

const commands = commandsOf(program, loadCommand)

/** Loads a command in place of its mere name; other words are left to whoever reads them. */
async function loadCommand(name: string): Promise<void> {
  const row = Object.hasOwn(commands, name) ? commands[name] : undefined
  const shown = program.commands as CliCommand[]
  const at = shown.findIndex((command) => command.name() === name)
  if (row === undefined || at < 0) return
  shown.splice(at, 1)
  await row.load()
}

/** The command that is asked for, or asked about with `help`. */
function askedFor(args: readonly string[]): string | undefined {
  const words = args.filter((arg) => !arg.startsWith('-'))
  return words[0] === 'help' ? words[1] : words[0]
}

const asked = askedFor(process.argv.slice(2))
for (const [name, { summary, hidden = false, load }] of Object.entries(commands)) {
  if (name === asked) await load()
  else program.command(name, { hidden }).summary(summary)
}
// No command has shown its arguments yet, so none does in this list; what comes below has its own.
program.configureHelp({ subcommandTerm: (command) => command.name() })

await runProgram(program)
