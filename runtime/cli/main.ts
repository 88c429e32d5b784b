#!/usr/bin/env node
/**
 * The `gatehouse` command. Assembles the command tree and runs it.
 *
 * Only the requested command is loaded. All other commands are registered only with their names and summaries.
 */
import type { CliCommand } from '../toolkit/terminal/command.ts'
import { commandsOf } from './commands.ts'
import { rootCommand, runProgram } from '../toolkit/terminal/program.ts'
const program = rootCommand('gatehouse')
program
  .description('A secure gateway for all of a team’s MCP servers.')
  .option('--debug', 'log at debug level', false)
  .addHelpText(
    'after',
    '\nStart here:\n' +
      '  gatehouse up --dry-run                                           the servers of all MCP clients behind one address\n' +
      '  gatehouse proxy --target-uri https://mcp.example.com my-server   one remote server behind a local address\n' +
      '  gatehouse dev -f manifests/examples/quickstart                   many servers as one, from manifests',
  )

const commands = commandsOf(program, loadCommand)

/** Replaces a command's placeholder with the actual command. Ignores unknown names. */
async function loadCommand(name: string): Promise<void> {
  const row = Object.hasOwn(commands, name) ? commands[name] : undefined
  const shown = program.commands as CliCommand[]
  const at = shown.findIndex((command) => command.name() === name)
  if (row === undefined || at < 0) return
  shown.splice(at, 1)
  await row.load()
}

/** Returns the name of the requested command, including one that follows `help`. */
function requestedCommand(args: readonly string[]): string | undefined {
  const words = args.filter((arg) => !arg.startsWith('-'))
  return words[0] === 'help' ? words[1] : words[0]
}

const requested = requestedCommand(process.argv.slice(2))
for (const [name, { summary, hidden = false, load }] of Object.entries(commands)) {
  if (name === requested) await load()
  else program.command(name, { hidden }).summary(summary)
}
// Placeholders have no arguments, so this list shows no arguments. The help of each command shows its arguments.
program.configureHelp({ subcommandTerm: (command) => command.name() })

await runProgram(program)
