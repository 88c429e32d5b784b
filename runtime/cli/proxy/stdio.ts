/**
 * `gatehouse proxy stdio TARGET` lets an MCP client that can only start programs use an HTTP server.
 *
 * TARGET is the server's URL, the name of a server that runs on this machine, or the name of a resource in the current
 * kubeconfig context's cluster. Standard output contains only MCP messages. Exit codes: 0 the client closed its end, 1
 * the server could not be reached, 2 invalid usage or configuration, 3 the login failed.
 * Source: docs/reference/specification/proxy-command.md (`proxy stdio`).
 */
import type { Command } from 'commander'
import { GatehouseError } from '../../../schemas/index.ts'
import {
  environment,
  type ProxyInput,
  readVariable,
  resolveProxyConfig,
  variables,
} from '../../config/index.ts'
import { runStdio } from '../../proxy/index.ts'
import { refuseIdle } from '../../toolkit/terminal/options.ts'
import { addLogFlags, commandLog, isDebugging } from '../../toolkit/terminal/log.ts'
import { exitCode, printError } from '../../toolkit/terminal/output.ts'
import { unreachableText } from '../../toolkit/targets/kubernetes.ts'
import { withLocalToken, runningNames } from '../../toolkit/targets/running.ts'
import { addProxyFlags, isUrl, loginFailed } from '../../toolkit/targets/proxy-flags.ts'
import { urlOfTarget } from '../../toolkit/targets/resolve.ts'
import { NamedArgument } from '../../toolkit/terminal/command.ts'
import { stopSignal } from '../../toolkit/terminal/stop.ts'

export function addProxyStdioCommand(proxy: Command): void {
  const command = proxy
    .command('stdio')
    .summary('connect a client that uses stdio to an HTTP server')
    .description(
      'For MCP clients that start one program per server. Forwards messages between the client and the server, and\n' +
        'logs in to the server as "gatehouse proxy" does.',
    )
    .addArgument(
      new NamedArgument(
        '<TARGET>',
        'URL of the server (https://mcp.example.com/mcp), the name of a server that runs on this machine, or a resource name in the current cluster',
        runningNames,
      ),
    )
    .option('--debug', 'log at debug level')
    .option('-n, --namespace <name>', 'namespace of the resource (default: the current context’s namespace)')
  addLogFlags(command)
  addProxyFlags(
    command,
    (row) =>
      row.group.startsWith('Outgoing') || row.group === 'Token exchange' || row.flag === '--request-timeout',
  )
  command
    .addHelpText(
      'after',
      '\nExample for an MCP client’s configuration:\n' +
        '  {"command": "gatehouse", "args": ["proxy", "stdio", "https://mcp.example.com/mcp", "--remote-auth"]}\n' +
        '\nExit codes: 0 end of input, 1 the server could not be reached, 2 invalid usage or configuration, 3 the login failed.',
    )
    .action(async (target: string, input: ProxyInput & { debug?: boolean; namespace?: string }) => {
      const debug = isDebugging()
      refuseIdle(command, [
        ['namespace', !isUrl(target), 'applies only to a resource name, but TARGET is a URL'],
      ])
      process.exitCode = await bridge(target, input, debug)
    })
}

async function bridge(
  target: string,
  input: ProxyInput & { namespace?: string },
  debug: boolean,
): Promise<number> {
  const url = await urlOfTarget(target, input.namespace)
  const targetUri = url.origin + url.search
  const config = resolveProxyConfig('stdio', { ...input, targetUri }, environment(), { debug })
  if (config.exchange && config.remote.kind !== 'oauth') {
    throw new GatehouseError('INVALID_CONFIG', {
      detail:
        '--token-exchange-url: requires --remote-auth here, because there is no other token to exchange',
    })
  }
  const log = commandLog({ level: config.debug ? 'debug' : 'warn', name: 'proxy-stdio' })
  const stop = new AbortController()
  void stopSignal(stop)
  try {
    const reached = await runStdio({
      config: withLocalToken(config, url),
      path: url.pathname,
      input: process.stdin,
      output: process.stdout,
      log,
      notify: printError,
      browser: readVariable(environment(), variables.browser),
      signal: stop.signal,
    })
    log.flush()
    if (reached || stop.signal.aborted) return exitCode.ok
    printError(`Error: ${unreachableText(url)}`)
    return exitCode.failed
  } catch (error) {
    if (stop.signal.aborted || (error instanceof GatehouseError && error.code === 'BACKEND_AUTH_FAILED'))
      return loginFailed(error, stop.signal, log)
    throw error
  }
}
