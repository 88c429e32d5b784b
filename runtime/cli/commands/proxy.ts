/**
 * `gatehouse proxy SERVER_NAME`: a transparent proxy in front of one MCP server, in the foreground until SIGINT or
 * SIGTERM.
 *
 * Flags come from the table in runtime/config; everything is checked there before anything is opened. Standard output
 * carries one line, from which scripts read the port; the log and what people must see go to standard error.
 * Exit codes: 0 stopped by a signal, 1 failed, 2 wrong usage or configuration, 3 the login failed.
 * Source: spec document 1.
 */
import { type Command, Option } from 'commander'
import {
  environment,
  type ProxyConfig,
  type ProxyInput,
  proxyFlags,
  readVariable,
  resolveProxyConfig,
  shownUri,
  variables,
} from '../../config/index.ts'
import { makeLog, type RootLog } from '../../observe/index.ts'
import { runProxy } from '../../proxy/index.ts'
import { exitCode, print, printError } from '../output.ts'
import { collect } from './validate.ts'

const graceMs = 5_000

export function addProxyCommand(program: Command): Command {
  const command = program
    .command('proxy')
    .summary('a transparent proxy in front of one MCP server')
    .description(
      'Forwards requests to the MCP server at --target-uri. Can sign in to it (OAuth, bearer token, token exchange),\n' +
        'and can protect its own endpoint with OIDC.',
    )
    .argument('<SERVER_NAME>', 'name of the proxy')
    .option('--debug', 'log at debug level')
  addProxyFlags(command)
  command
    .addHelpText(
      'after',
      '\nExamples:\n' +
        '  gatehouse proxy --target-uri http://127.0.0.1:9000 --port 8080 notes\n' +
        '  gatehouse proxy --target-uri https://mcp.example.com --remote-auth example\n' +
        '  gatehouse proxy --target-uri https://mcp.example.com --remote-auth-bearer-token-file token.txt example\n' +
        '\nExit codes: 0 stopped by a signal, 1 failed, 2 wrong usage or configuration, 3 the login failed.',
    )
    .action(async (name: string, input: ProxyInput & { readonly debug?: boolean }) => {
      const debug = input.debug === true || program.opts<{ readonly debug?: boolean }>().debug === true
      const config = resolveProxyConfig(name, input, environment(), debug)
      process.exitCode = await serve(config)
    })
  return command
}

/** Adds the rows of the flag table, but for the named ones. */
export function addProxyFlags(command: Command, without: readonly (keyof ProxyInput)[] = []): void {
  for (const [key, row] of Object.entries(proxyFlags)) {
    if (without.some((name) => name === key)) continue
    const value = 'value' in row ? ` <${row.value}>` : ''
    const byDefault = 'default' in row ? ` (default: ${row.default})` : ''
    const option = new Option(`${row.flag}${value}`, row.help + byDefault).helpGroup(`${row.group}:`)
    if (row.kind === 'list' || row.kind === 'repeat') option.argParser(collect)
    command.addOption(option)
  }
}

async function serve(config: ProxyConfig): Promise<number> {
  const log = makeLog({ level: config.debug ? 'debug' : 'info', name: 'proxy' })
  const stop = new AbortController()
  const stopped = stopSignal(stop)
  const proxy = await runProxy(config, {
    log,
    notify: printError,
    browser: readVariable(environment(), variables.browser),
    signal: stop.signal,
  })
  try {
    await proxy.ready
  } catch (error) {
    await proxy.close({ graceMs: 0 })
    return failed(error, stop.signal.aborted, log)
  }
  print(
    `Transparent proxy started for server ${config.name} on port ${proxy.port} -> ${shownUri(config.targetUri)}`,
  )
  await stopped
  print('Stopping; requests in flight have 5 seconds')
  await proxy.close({ graceMs })
  log.flush()
  return exitCode.ok
}

function failed(error: unknown, interrupted: boolean, log: RootLog): number {
  log.flush()
  if (interrupted) {
    printError('Error: stopped during the login')
    return exitCode.failed
  }
  printError(
    `Error: failed to authenticate to remote server: ${error instanceof Error ? error.message : String(error)}`,
  )
  return exitCode.authentication
}

/** Resolves at the first SIGINT or SIGTERM; the second one ends the process at once. */
function stopSignal(stop: AbortController): Promise<void> {
  return new Promise((resolve) => {
    const onSignal = (): void => {
      if (stop.signal.aborted) process.exit(exitCode.failed)
      stop.abort(new Error('stopped by a signal'))
      resolve()
    }
    process.on('SIGINT', onSignal)
    process.on('SIGTERM', onSignal)
  })
}
