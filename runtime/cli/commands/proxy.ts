/**
 * `gatehouse proxy SERVER_NAME`: a transparent proxy in front of one MCP server, in the foreground until SIGINT or
 * SIGTERM.
 *
 * Flags come from the table in runtime/config; everything is checked there before anything is opened. Standard output
 * carries one line, from which scripts read the port; the log and what people must see go to standard error.
 * Exit codes: 0 stopped by a signal, 1 failed, 2 wrong usage or configuration, 3 the login failed.
 * Source: spec document 1.
 */
import type { Command } from 'commander'
import {
  environment,
  type ProxyConfig,
  type ProxyInput,
  readVariable,
  resolveProxyConfig,
  shownUri,
  variables,
} from '../../config/index.ts'
import { makeLog } from '../../observe/index.ts'
import { runProxy } from '../../proxy/index.ts'
import { exitCode, print, printError } from '../output.ts'
import { addProxyFlags, loginFailed, stopSignal } from './proxy-shared.ts'
import { addProxyStdioCommand } from './proxy-stdio.ts'
import { addProxyTunnelCommand } from './proxy-tunnel.ts'

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
  addProxyStdioCommand(command)
  addProxyTunnelCommand(command)
  return command
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
    return loginFailed(error, stop.signal.aborted, log)
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
