/**
 * `gatehouse proxy SERVER_NAME` runs a transparent proxy in front of one MCP server, in the foreground until SIGINT or
 * SIGTERM.
 *
 * The flags come from the table in runtime/config, which checks all flags before the proxy opens anything. Standard
 * output contains a single line, from which scripts read the port. The log and messages for the user go to standard
 * error. Exit codes: 0 stopped by a signal, 1 failed, 2 invalid usage or configuration, 3 the login failed. If a signal
 * stopped the login, the exit code is 128 plus the signal number.
 * Source: docs/reference/specification/proxy-command.md.
 */
import type { Command } from 'commander'
import type { CertificateFiles } from '../../../schemas/certificate/index.ts'
import { GatehouseError, isSwitchedOn, type ProxyFile, type RuntimeToolLock } from '../../../schemas/index.ts'
import {
  deepProxyFile,
  environment,
  loadProxyFile,
  needsVirtualServer,
  offeredLogin,
  type ProxySettings,
  type ProxyInput,
  readLocalTokens,
  readVariable,
  readWebhookFiles,
  requireNoOtherFlags,
  resolveProxyConfig,
  resolveProxyFile,
  servingFiles,
  shownUri,
  variables,
  shutdownGraceMs,
  virtualServerOf,
  type VmcpConfig,
  vmcpEnvironment,
} from '../../config/index.ts'
import type { EmbeddedAuthServer } from '../../incoming/index.ts'
import { type Events, logEvents, makeEvents, type RootLog } from '../../observe/index.ts'
import { authServerViolations, runPrimary, runProxy, runWorker } from '../../proxy/index.ts'
import { isWorker } from '../../process/index.ts'
import { version } from '../../toolkit/terminal/self.ts'
import { addLogFlags, commandLog, isDebugging } from '../../toolkit/terminal/log.ts'
import { exitCode, print, printError } from '../../toolkit/terminal/output.ts'
import type { LockKeeper } from '../../vmcp/index.ts'
import type { LockStorage } from '../../tools/lock/index.ts'
import { authServerFileBeside, Checks, withAuthServer } from '../vmcp/auth-server.ts'
import { addProxyFlags, environmentHelp, loginFailed } from '../../toolkit/targets/proxy-flags.ts'
import { stopSignal } from '../../toolkit/terminal/stop.ts'
import { serveStdioTarget } from './stdio-target.ts'
import { addProxyStdioCommand } from './stdio.ts'
import { addProxyTunnelCommand } from './tunnel.ts'
import { bindError } from '../../toolkit/terminal/options.ts'

const defaultGraceMs = 5_000
/** A proxy has one target, so callers cannot choose between several upstreams. */
const maxUpstreams = 1

/** A proxy configuration that requires more than forwarding, converted to a virtual server's configuration. */
export interface VirtualServerRequest {
  readonly config: VmcpConfig
  /** Stores the target's lock if the target has no lock yet. */
  readonly lockKeeper?: LockKeeper | undefined
  /** Flags and sections of the file that require a virtual server. */
  readonly sections: readonly string[]
  readonly env: Readonly<Record<string, string | undefined>>
  readonly host: string
  readonly port: number
  /** Certificate files; undefined for plain HTTP. */
  readonly tls: CertificateFiles | undefined
  readonly allowedOrigins: readonly string[]
  /** Configuration file of an embedded authorization server. */
  readonly authServerFile: string | undefined
  readonly debug: boolean
}

/** Functions of other modules that this command uses. */
export interface ProxyFeatures {
  /**
   * Serves until a signal arrives, then resolves with the exit code. The function must either serve every section of
   * the file or throw.
   */
  readonly virtualServer?: (request: VirtualServerRequest) => Promise<number>
}

export function addProxyCommand(program: Command, features: ProxyFeatures = {}): Command {
  const command = program
    .command('proxy')
    .summary('run a transparent proxy in front of one MCP server')
    .description(
      'Forwards requests to the MCP server at --target-uri. The proxy can log in to that server (OAuth, bearer token,\n' +
        'token exchange) and can require OIDC tokens from its own clients.',
    )
    .argument('<SERVER_NAME>', 'name of the proxy; write -- before a name that is also a subcommand')
    .option('--debug', 'log at debug level')
  addProxyFlags(command)
  addLogFlags(command)
  command
    .addHelpText(
      'after',
      `${environmentHelp()}\nExamples:\n` +
        '  gatehouse proxy --target-uri http://127.0.0.1:9000 --port 8080 notes\n' +
        '  gatehouse proxy --target-uri https://mcp.example.com --remote-auth example\n' +
        '  gatehouse proxy --target-uri https://mcp.example.com --remote-auth-bearer-token-file token.txt example\n' +
        '  gatehouse proxy --target-uri http://127.0.0.1:9000 --tool-lock notes.lock.yaml notes\n' +
        '  gatehouse proxy --target-uri http://127.0.0.1:9000 --webhook-config webhooks.yaml notes\n' +
        '\nExit codes: 0 stopped by a signal, 1 failed, 2 invalid usage or configuration, 3 the login failed,\n128 plus the signal number when a signal stopped the login.',
    )
    .action(async (name: string, input: ProxyInput) => {
      process.exitCode = await run(name, input, isDebugging(), features)
    })
  addProxyStdioCommand(command)
  addProxyTunnelCommand(command)
  return command
}

async function run(
  name: string,
  input: ProxyInput,
  debug: boolean,
  features: ProxyFeatures,
): Promise<number> {
  const env = environment()
  const pins = await pinsOf(input, name)
  const deepFlags = [
    ...(pins ? [pins.flag] : []),
    ...(input.webhookConfig === undefined ? [] : ['--webhook-config']),
  ]
  if (input.config === undefined) {
    if (deepFlags.length === 0)
      return serve(withOfferedLogin(resolveProxyConfig(name, input, env, { debug })))
    const { file, env: extended } = deepProxyFile(name, input, env, deepFlags)
    return serveDeep(file, { input, env: extended, pins, sections: deepFlags, debug, features })
  }
  const file = loadProxyFile(input.config)
  const isStdio = file.stdio !== undefined || file.attach !== undefined
  if (isStdio && deepFlags.length > 0)
    throw new GatehouseError('INVALID_CONFIG', {
      detail: `${deepFlags.join(', ')}: the target must be a URL, not a program`,
    })
  if (isStdio) return serveStdioTarget(file, input, debug || file.logLevel === 'debug')
  const authServerFile = authServerFileBeside(input.config)
  const deep = [...needsVirtualServer(file), ...deepFlags]
  if (deep.length === 0) {
    const config = await resolveWithAuthServer(
      () => resolveProxyFile(name, file, input, env, { debug }),
      authServerFile,
    )
    return serve(config, authServerFile)
  }
  requireNoOtherFlags(input, deep)
  if (pins && file.name !== name)
    throw new GatehouseError('INVALID_CONFIG', {
      detail: `${pins.flag}: the configuration file is for ${file.name}, not for ${name}`,
    })
  return serveDeep(file, { input, env, pins, sections: deep, authServerFile, debug, features })
}

/** Locks to compare the target's definitions with. */
interface ProxyPins {
  readonly flag: '--tool-lock' | '--pin-first'
  readonly locks: readonly RuntimeToolLock[]
  /** Path of a new lock if the target does not have a lock. */
  readonly store?: LockStorage
}

/** Returns the locks for the target; undefined when definitions are not checked. Throws INVALID_CONFIG. */
async function pinsOf({ toolLock, pinFirst }: ProxyInput, name: string): Promise<ProxyPins | undefined> {
  if (toolLock !== undefined && pinFirst !== undefined)
    throw new GatehouseError('INVALID_CONFIG', {
      detail:
        '--pin-first: cannot be combined with --tool-lock, because --pin-first already reads the lock from its file',
    })
  if (toolLock !== undefined) {
    const { proxyLocks } = await import('../../tools/lock/index.ts')
    return { flag: '--tool-lock', locks: proxyLocks(toolLock, name) }
  }
  if (pinFirst === undefined) return undefined
  const { lockFile } = await import('../../tools/lock/index.ts')
  return { flag: '--pin-first', locks: [], store: lockFile(pinFirst, name) }
}

interface DeepOptions {
  readonly input: ProxyInput
  readonly env: Readonly<Record<string, string | undefined>>
  readonly pins: ProxyPins | undefined
  /** Flags and sections of the file that require a virtual server. */
  readonly sections: readonly string[]
  readonly authServerFile?: string | undefined
  readonly debug: boolean
  readonly features: ProxyFeatures
}

/** Serves a proxy that must parse every message. */
async function serveDeep(file: ProxyFile, options: DeepOptions): Promise<number> {
  const { input, env, pins, sections, authServerFile, debug, features } = options
  if (!features.virtualServer) {
    throw new GatehouseError('INVALID_CONFIG', {
      detail: `this build does not support: ${sections.join(', ')}`,
    })
  }
  const { webhookConfig } = input
  const withFlag = webhookConfig && { webhooks: await webhooksOf(webhookConfig, env, file.webhooks) }
  const { config, env: extended } = virtualServerOf({ ...file, ...withFlag }, env, pins?.locks)
  return features.virtualServer({
    config: pins?.store ? pins.store.with(config) : config,
    lockKeeper: pins?.store,
    sections,
    env: extended,
    host: input.host ?? file.host,
    port: Number(input.port ?? file.port),
    tls: servingFiles(input),
    allowedOrigins: input.allowedOrigins ?? file.allowedOrigins ?? [],
    authServerFile,
    debug: debug || file.logLevel === 'debug',
  })
}

async function webhooksOf(
  files: readonly string[],
  env: DeepOptions['env'],
  first: ProxyFile['webhooks'],
): Promise<NonNullable<ProxyFile['webhooks']>> {
  const { webhookFileViolation } = await import('../../policy/index.ts')
  return readWebhookFiles(files, env, {
    first,
    check: (webhook, list, field) => webhookFileViolation(webhook, list, { env, field }),
  })
}

/** If standard error is a terminal, adds the login that the target requires. */
function withOfferedLogin(config: ProxySettings): ProxySettings {
  const offered =
    process.stderr.isTTY && config.workers === 1 ? offeredLogin(config, environment()) : undefined
  return offered ? { ...config, remote: offered } : config
}

/** Returns the settings of the proxy after checking them together with those of the authorization server. */
async function resolveWithAuthServer(
  resolve: () => ProxySettings,
  authServerFile: string | undefined,
): Promise<ProxySettings> {
  if (authServerFile === undefined) return resolve()
  const { checkAuthServer } = await import('../../authserver/index.ts')
  const checks = new Checks()
  const config = await checks.run(resolve)
  const server = await checks.run(() => checkAuthServer(authServerFile, environment(), { maxUpstreams }))
  if (config && server) {
    await checks.run(() => {
      const problems = authServerViolations(config, server)
      if (problems.length > 0) throw new GatehouseError('INVALID_CONFIG', { detail: problems.join('\n') })
    })
  }
  checks.throwIfAny()
  if (!config) throw new GatehouseError('INTERNAL')
  return config
}

async function serve(config: ProxySettings, authServerFile?: string): Promise<number> {
  const log = commandLog({ level: config.debug ? 'debug' : 'info', name: 'proxy' })
  const events = makeEvents()
  const stopLog = logEvents(events, log)
  return withAuthServer(authServerFile, { log, events, maxUpstreams }, (authServer) =>
    serveWith(config, { log, events }, authServer),
  ).finally(stopLog)
}

async function serveWith(
  config: ProxySettings,
  { log, events }: { readonly log: RootLog; readonly events: Events },
  authServer: EmbeddedAuthServer | undefined,
): Promise<number> {
  const stop = new AbortController()
  const stopped = stopSignal(stop)
  const env = environment()
  const graceMs = shutdownGraceMs(env) ?? defaultGraceMs
  const localTokens = readLocalTokens(env)
  const parts = {
    log,
    events,
    version,
    notify: printError,
    browser: readVariable(env, variables.browser),
    secret: (variable: string) => env[variable],
    enableObo: isSwitchedOn(env, vmcpEnvironment.enableObo),
    localTokens: localTokens && { digests: localTokens },
    signal: stop.signal,
    ...(authServer ? { authServer } : {}),
  }
  if (isWorker) {
    // Prints no error, because the primary process reports worker failures.
    return runWorker(config, parts).then(
      () => exitCode.ok,
      () => exitCode.failed,
    )
  }
  const starting = config.workers > 1 ? runPrimary(config, parts) : runProxy(config, parts)
  const proxy = await starting.catch((error: unknown) => {
    // Prints the warnings before the error.
    log.flush()
    throw bindError(error, 'proxy')
  })
  try {
    await proxy.ready
  } catch (error) {
    await proxy.close({ graceMs: 0 })
    return loginFailed(error, stop.signal, log)
  }
  print(
    `Transparent proxy started for server ${config.name} on port ${proxy.port} -> ${shownUri(config.targetUri)}`,
  )
  await stopped
  print(`Stopping; waiting up to ${graceMs / 1000} seconds for in-flight requests to finish`)
  await proxy.close({ graceMs })
  log.flush()
  return exitCode.ok
}
