#!/usr/bin/env node
/**
 * The `gatehouse` command: wires the features to one command tree. Nothing is decided here.
 *
 * Exit codes: 0 done, 1 failed, 2 wrong usage or configuration, 3 failed authentication.
 */
import { Command, CommanderError } from 'commander'
import { GatehouseError } from '../../schemas/index.ts'
import { addDevCommand } from './commands/dev.ts'
import { addProxyCommand } from './commands/proxy.ts'
import { addRelayCommand } from './commands/relay.ts'
import { addRenderCommand } from './commands/render.ts'
import { addUnpackCommand } from './commands/unpack.ts'
import { addValidateCommand } from './commands/validate.ts'
import { serveAsVirtualServer } from './commands/virtual-server.ts'
import { addVmcpCommand } from './commands/vmcp.ts'
import { exitCode, printError } from './output.ts'
import { version } from './version.ts'

// A reader that has seen enough, such as head, is no fault.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error
  process.exit(exitCode.ok)
})

const program = new Command('gatehouse')
  .description('One guarded door to all of a team’s MCP servers.')
  .version(version, '-V, --version', 'print the version')
  .option('--debug', 'log at debug level', false)
  .showSuggestionAfterError()
  .showHelpAfterError('(add --help for what is possible)')
  .enablePositionalOptions()
  .exitOverride()
  .addHelpText(
    'after',
    '\nStart here:\n' +
      '  gatehouse proxy --target-uri https://mcp.example.com my-server   one remote server behind a local address\n' +
      '  gatehouse dev -f manifests/examples/quickstart                   many servers as one, from manifests',
  )

addProxyCommand(program, { virtualServer: serveAsVirtualServer })
addVmcpCommand(program)
addRelayCommand(program)
addValidateCommand(program)
addRenderCommand(program)
addDevCommand(program)
addUnpackCommand(program)

try {
  await program.parseAsync()
} catch (error) {
  process.exitCode = codeOf(error)
}

/** Reports what went wrong, once, and says with which code to end. */
function codeOf(error: unknown): number {
  // Commander has printed its own message already; help and version end with code 0.
  if (error instanceof CommanderError) return error.exitCode === 0 ? exitCode.ok : exitCode.usage
  printError(`Error: ${error instanceof Error ? error.message : String(error)}`)
  return error instanceof GatehouseError && error.code === 'INVALID_CONFIG' ? exitCode.usage : exitCode.failed
}
