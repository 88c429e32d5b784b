/**
 * `gatehouse proxy tunnel TARGET SERVER_NAME` runs the proxy behind a public tunnel, in the foreground until SIGINT or
 * SIGTERM.
 *
 * TARGET is either the target's URL (without a path) or a resource name in the current cluster. Standard output
 * contains only the public URL: one line each time the URL changes. The proxy command has the same exit codes.
 * Source: docs/reference/specification/proxy-command.md (`proxy tunnel`).
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
import { makeTunnelProvider, refuseOpenTunnel, runTunnel, tunnelProviders } from '../../proxy/index.ts'
import { refuseIdle } from '../../toolkit/terminal/options.ts'
import { addLogFlags, commandLog, isDebugging } from '../../toolkit/terminal/log.ts'
import { exitCode, print, printError } from '../../toolkit/terminal/output.ts'
import { Checks } from '../vmcp/auth-server.ts'
import { urlOfResource } from '../../toolkit/targets/kubernetes.ts'
import { addProxyFlags, isUrl, loginFailed } from '../../toolkit/targets/proxy-flags.ts'
import { stopSignal } from '../../toolkit/terminal/stop.ts'

type TunnelInput = ProxyInput & {
  readonly namespace?: string
  readonly tunnelProvider: string
  readonly providerArgs: string
  readonly dryRun?: boolean
  readonly insecureUnauthenticated?: boolean
  readonly targetRequiresLogin?: boolean
}

const excludedFlags: ReadonlySet<string> = new Set([
  '--target-uri',
  '--host',
  '--tls-cert-file',
  '--tls-key-file',
  '--tls-client-ca-file',
  '--workers',
  '--config',
  '--tool-lock',
  '--pin-first',
  '--webhook-config',
])

export function addProxyTunnelCommand(proxy: Command): void {
  const command = proxy
    .command('tunnel')
    .summary('expose a server to the internet through the proxy')
    .description('Exposes an MCP server through a tunnel, behind a proxy that applies all of its checks.')
    .argument('<TARGET>', 'URL of the MCP server, without a path, or a resource name in the current cluster')
    .argument('<SERVER_NAME>', 'name of the proxy')
    .option('--debug', 'log at debug level')
    .option('-n, --namespace <name>', 'namespace of the resource (default: the current context’s namespace)')
    .requiredOption('--tunnel-provider <name>', `one of ${tunnelProviders.join(', ')} (required)`)
    .option('--provider-args <json>', 'provider settings as a JSON object', '{}')
    .option('--dry-run', 'check all settings without opening the tunnel')
    .option(
      '--insecure-unauthenticated',
      'allow a tunnel without --oidc-* flags, which is open to anyone with the URL',
    )
    .option(
      '--target-requires-login',
      'forward the login of a target that authenticates clients itself, such as "gatehouse up --login"; cannot be combined with --oidc-* flags',
    )
  addLogFlags(command)
  addProxyFlags(command, ({ flag }) => !excludedFlags.has(flag))
  command
    .addHelpText(
      'after',
      '\nProviders and their settings:\n' +
        '  ssh    host, user, port, remote-bind ([address:]port), identity-file, url\n' +
        '  relay  url, hostname, auth-token-file (a self-hosted `gatehouse relay`)\n' +
        '  exec   command (list; {target} and {port} are replaced), url-pattern, auth-token-env\n' +
        `The variable ${variables.tunnelAuthToken.name} supplies the token for relay and exec.\n` +
        '\nExample:\n' +
        '  gatehouse proxy tunnel http://127.0.0.1:9000 notes --oidc-issuer https://id.example.com \\\n' +
        '    --tunnel-provider ssh --provider-args \'{"host":"gw.example.com","remote-bind":"8080"}\'\n' +
        '\nExit codes: 0 stopped by a signal, 1 failed, 2 invalid usage or configuration, 3 the login failed.',
    )
    .action(async (target: string, name: string, input: TunnelInput) => {
      const debug = isDebugging()
      refuseIdle(command, [
        ['namespace', !isUrl(target), 'applies only to a resource name, but TARGET is a URL'],
      ])
      process.exitCode = await tunnel(target, name, input, debug)
    })
}

async function tunnel(target: string, name: string, input: TunnelInput, debug: boolean): Promise<number> {
  const env = environment()
  const { targetUri, path } = await readTarget(target, input.namespace)
  const checks = new Checks()
  const config = await checks.run(() => resolveProxyConfig(name, { ...input, targetUri }, env, { debug }))
  const provider = await checks.run(() =>
    makeTunnelProvider(input.tunnelProvider, input.providerArgs, {
      env,
      ca: config?.remoteCa,
      proxy: config?.proxyEnvironment,
    }),
  )
  const { insecureUnauthenticated = false, targetRequiresLogin = false } = input
  const access = { insecureUnauthenticated, targetRequiresLogin }
  if (config) await checks.run(() => refuseOpenTunnel(config, access))
  checks.throwIfAny()
  if (!config || !provider) throw new GatehouseError('INTERNAL')
  if (input.dryRun) {
    printError('The settings are valid. The tunnel was not opened (--dry-run).')
    return exitCode.ok
  }
  const log = commandLog({ level: config.debug ? 'debug' : 'info', name: 'proxy-tunnel' })
  const stop = new AbortController()
  const stopped = stopSignal(stop)
  const proxy = await runTunnel({
    config,
    provider,
    ...access,
    onUrl: (url) => print(url.replace(/\/$/, '') + path),
    log,
    notify: printError,
    browser: readVariable(env, variables.browser),
    signal: stop.signal,
  })
  try {
    await proxy.ready
  } catch (error) {
    await proxy.close({ graceMs: 0 })
    return loginFailed(error, stop.signal, log)
  }
  await stopped
  await proxy.close({ graceMs: 5_000 })
  log.flush()
  return exitCode.ok
}

/** Prints the path of a resource with the public URL. For a URL target, clients add the path. */
async function readTarget(
  target: string,
  namespace: string | undefined,
): Promise<{ readonly targetUri: string; readonly path: string }> {
  if (isUrl(target)) return { targetUri: target, path: '' }
  const url = new URL(await urlOfResource(target, namespace))
  return { targetUri: url.origin + url.search, path: url.pathname === '/' ? '' : url.pathname }
}
