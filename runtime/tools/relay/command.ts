/**
 * `gatehouse relay` provides public addresses for proxies behind tunnels (`proxy tunnel --tunnel-provider relay`), in
 * the foreground until SIGINT or SIGTERM. TLS is terminated in front of the relay.
 */
import type { Command } from 'commander'
import { GatehouseError } from '../../../schemas/index.ts'
import { environment, readVariable, rotatingSecret, variables } from '../../config/index.ts'
import { Secret } from '../../observe/index.ts'
import { startRelay } from '../../proxy/index.ts'
import { addLogFlags, commandLog, isDebugging } from '../../toolkit/terminal/log.ts'
import { exitCode, print } from '../../toolkit/terminal/output.ts'
import { stopSignal } from '../../toolkit/terminal/stop.ts'

interface RelayFlags {
  readonly host: string
  readonly port: string
  readonly domain: string
  readonly publicUrl?: string
  readonly authTokenFile?: string
}

const minTokenChars = 16

export function addRelayCommand(program: Command): void {
  addLogFlags(program.command('relay'))
    .summary('run a self-hosted relay for tunnels')
    .description(
      'Accepts tunnels from `gatehouse proxy tunnel --tunnel-provider relay` and forwards requests for <name>.<domain>\n' +
        'through them. Requires a wildcard DNS name, and TLS termination in front of the relay.',
    )
    .option('--host <address>', 'address to bind', '127.0.0.1')
    .option('--port <number>', 'port to bind; 0 lets the system choose', '8744')
    .requiredOption(
      '--domain <name>',
      'domain for the tunnels, which are available at <name>.<domain> (required)',
    )
    .option(
      '--public-url <pattern>',
      'public URL of the tunnels, with * as a placeholder for the name (default: http://*.<domain>:<port>)',
    )
    .option(
      '--auth-token-file <file>',
      `file that contains the token that tunnels must present (default: the variable ${variables.tunnelAuthToken.name})`,
    )
    .option('--debug', 'log at debug level')
    .addHelpText(
      'after',
      '\nExample:\n  gatehouse relay --domain tunnels.example.com --public-url https://*.tunnels.example.com --auth-token-file token\n' +
        '\nExit codes: 0 stopped by a signal, 1 failed, 2 invalid usage or configuration.',
    )
    .action(async (flags: RelayFlags) => {
      process.exitCode = await relay(flags, isDebugging())
    })
}

async function relay(flags: RelayFlags, debug: boolean): Promise<number> {
  const port = /^\d{1,5}$/.test(flags.port) ? Number(flags.port) : Number.NaN
  const violations = [
    ...(port >= 0 && port < 65_536 ? [] : ['--port: must be a whole number from 0 to 65535']),
    ...(/^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/i.test(flags.domain) ? [] : ['--domain: must be a DNS name']),
    ...(flags.publicUrl === undefined || /^https?:\/\/\*\.[^*]+$/.test(flags.publicUrl)
      ? []
      : ['--public-url: must be like https://*.tunnels.example.com']),
  ]
  const authToken = tokenSource(flags)
  if (!authToken)
    violations.push(
      `--auth-token-file: required, unless the variable ${variables.tunnelAuthToken.name} is set`,
    )
  else if (authToken().reveal().length < minTokenChars) {
    // A client that guesses the token can take over a name and receive the requests sent to it.
    violations.push(`--auth-token-file: the token must have at least ${minTokenChars} characters`)
  }
  if (!authToken || violations.length > 0)
    throw new GatehouseError('INVALID_CONFIG', { detail: violations.join('\n') })
  const log = commandLog({ level: debug ? 'debug' : 'info', name: 'relay' })
  const stopped = stopSignal(new AbortController())
  const { host, domain, publicUrl } = flags
  const running = await startRelay({ host, port, domain, publicUrl, authToken, log })
  print(`Relay started on port ${running.port} for *.${domain}`)
  await stopped
  await running.close({ graceMs: 5_000 })
  log.flush()
  return exitCode.ok
}

function tokenSource({ authTokenFile }: RelayFlags): (() => Secret) | undefined {
  if (authTokenFile !== undefined) return rotatingSecret(authTokenFile)
  const tokenText = readVariable(environment(), variables.tunnelAuthToken)
  if (tokenText === undefined) return undefined
  const secret = new Secret(tokenText)
  return () => secret
}
