/**
 * `gatehouse vmcp serve|validate|init` combines many MCP servers behind one address.
 *
 * `serve` runs in the foreground until SIGINT or SIGTERM, and applies changes to its configuration file without a
 * restart. When a changed file has errors, `serve` reports the errors and keeps the running configuration.
 * Source: docs/reference/specification/virtual-server.md; runtime/config/vmcp/file.ts for the file.
 */
import { type Command, Option } from 'commander'
import {
  environment,
  loadVmcpConfig,
  type ServeFlags,
  serveSettings,
  shutdownGraceMs,
  type VmcpConfig,
  vmcpEnvironment,
} from '../../config/index.ts'
import { allWarnings } from '../../vmcp/index.ts'
import { refuseIdle, collect } from '../../toolkit/terminal/options.ts'
import { addLogFlags, isDebugging } from '../../toolkit/terminal/log.ts'
import { print, printError } from '../../toolkit/terminal/output.ts'
import { version } from '../../toolkit/terminal/self.ts'
import { authServerFileBeside } from './auth-server.ts'
import { type ReadConfig, readChecked, serveVmcp } from './serve.ts'
import { quickConfig, starterFile, writeStarter } from './starter.ts'

interface ServeOptions extends ServeFlags {
  readonly config?: string
  readonly group?: string
  readonly backend: string[]
  readonly enableAudit: boolean
  readonly optimizer: boolean
  readonly pinFirst?: string
}

interface InitOptions {
  readonly group: string
  readonly backend: string[]
  readonly output?: string
  readonly config?: string
}

const backendHelp =
  'backend as name=URL, repeatable; a path that ends in /sse selects the deprecated HTTP+SSE transport'

export function addVmcpCommand(program: Command): void {
  const vmcp = program
    .command('vmcp')
    .summary('serve many MCP servers behind one address')
    .description(
      'Runs virtual MCP servers, which serve many backends behind one address, and writes and checks their configuration.',
    )
  addServe(vmcp)
  vmcp
    .command('validate')
    .summary('check a configuration file')
    .description(
      'Runs all of the checks that serve runs before it starts, and prints a summary of the configuration.',
    )
    .requiredOption('-c, --config <file>', 'configuration file (required)')
    .addHelpText(
      'after',
      '\nExample:\n  gatehouse vmcp validate --config vmcp.yaml\n\nExit codes: 0 valid, 2 invalid or unreadable configuration, or invalid usage.',
    )
    .action(async (options: { readonly config: string }) => {
      const env = environment()
      const flags = { host: '127.0.0.1', port: '0', allowedOrigins: [] }
      const { config, parts, excluded } = await readChecked(
        {
          read: () => loadVmcpConfig(options.config),
          authServerFile: authServerFileBeside(options.config),
          env,
        },
        'all',
        [() => shutdownGraceMs(env), () => serveSettings(flags, env)],
      )
      for (const warning of allWarnings(config, parts, excluded))
        printError(`${options.config}: warning: ${warning}`)
      describe(config)
    })
  vmcp
    .command('init')
    .summary('write a starter configuration')
    .description('Writes a configuration file for serve. Never overwrites an existing file.')
    .requiredOption('-g, --group <name>', 'name of the backend group (required)')
    .option('--backend <name=url>', backendHelp, collect, [])
    .option('-o, --output <file>', 'file to write, or - for standard output (default: -)')
    .addOption(new Option('-c, --config <file>', 'alias of --output').conflicts('output'))
    .addHelpText(
      'after',
      '\nExample:\n  gatehouse vmcp init --group demo --backend files=http://127.0.0.1:8001/mcp -o vmcp.yaml\n' +
        '\nExit codes: 0 written, 2 invalid usage, or the file exists or cannot be written.',
    )
    .action((options: InitOptions) => {
      const text = starterFile(options.group, options.backend)
      const { output = options.config ?? '-' } = options
      if (output === '-') print(text)
      else writeStarter(output, text)
    })
}

function addServe(vmcp: Command): void {
  addLogFlags(vmcp.command('serve'))
    .summary('run a virtual MCP server')
    .description(
      'Serves the backends in a configuration file, or those given with --backend, behind one address. Runs in the foreground until it receives a signal.',
    )
    .option(
      '-c, --config <file>',
      'configuration file; changes take effect without a restart; required unless --group and --backend are set',
    )
    .option(
      '--group <name>',
      'group name, used with --backend instead of --config; anyone on this machine can call the tools',
    )
    .option('--backend <name=url>', backendHelp, collect, [])
    .option('--host <address>', 'address to bind', '127.0.0.1')
    .option('--port <number>', 'port to bind; 0 lets the system choose', '4483')
    .option(
      '--tls-cert-file <file>',
      'serve HTTPS with this certificate chain, PEM; reloaded when it changes',
    )
    .option('--tls-key-file <file>', 'private key of the certificate, PEM, without a passphrase')
    .option(
      '--tls-client-ca-file <file>',
      'ask clients for certificates issued by these authorities (PEM), for tokens that are bound to a certificate; reloaded when the file changes',
    )
    .option('--session-ttl <duration>', 'time until an idle session expires (default: 30m)')
    .option(
      '--max-sessions <number>',
      'maximum number of sessions in memory (default: 10000, or 1000 with Redis, where the rest stay in the store)',
    )
    .option(
      '--workers <count>',
      'number of processes that share the port, to use several cores (default: the value in the file, or 1)',
    )
    .option('--enable-audit', 'write an audit log, unless the file contains audit settings', false)
    .option(
      '--optimizer',
      'list find_tool and call_tool (keyword search) instead of all tools, unless the file contains optimizer settings',
      false,
    )
    .option(
      '--pin-first <folder>',
      'trust on first use: approve each backend’s initial definitions, write its lock to this folder, and enforce it',
    )
    .option(
      '--allowed-origins <origin>',
      'browser origin that is allowed to connect; repeatable',
      collect,
      [],
    )
    .addHelpText(
      'after',
      '\nExamples:\n  gatehouse vmcp serve --config vmcp.yaml\n' +
        '  gatehouse vmcp serve --group demo --backend files=http://127.0.0.1:8001/mcp --backend notes=http://127.0.0.1:8002/sse\n' +
        '\nEnvironment: GATEHOUSE_VMCP_SESSION_TTL and GATEHOUSE_VMCP_MAX_SESSIONS set the defaults of --session-ttl and --max-sessions.\n' +
        '\nExit codes: 0 stopped by a signal, 1 failed, 2 invalid usage or configuration.',
    )
    .action(async (options: ServeOptions, command: Command) => {
      const isWithoutFile = options.config === undefined
      refuseIdle(command, [
        ['group', isWithoutFile, 'has no effect with --config, because the file sets the group'],
        ['backend', isWithoutFile, 'has no effect with --config, because the file lists the backends'],
      ])
      await serve(options, isDebugging())
    })
}

function readConfig(options: ServeOptions): ReadConfig {
  const { config, ...file } =
    options.config === undefined
      ? {
          config: quickConfig(options.group, options.backend, options.host),
          checksum: undefined,
          excluded: [],
        }
      : loadVmcpConfig(options.config)
  const audited = options.enableAudit && !config.audit ? withAudit(config) : config
  return { config: options.optimizer && !config.optimizer ? withToolSearch(audited) : audited, ...file }
}

/** Enables only keyword search, because there is no embedding service. */
function withToolSearch(config: VmcpConfig): VmcpConfig {
  return {
    ...config,
    optimizer: {
      embeddingProvider: 'tei',
      embeddingServiceTimeout: '30s',
      hybridSearchSemanticRatio: '0.0',
      maxToolsToReturn: 8,
      semanticDistanceThreshold: '1.0',
    },
  }
}

/** `gatehouse dev` runs each virtual server in one process, with a console. */
function withWorkers(config: VmcpConfig, workersFlag: number | undefined, isLocal: boolean): VmcpConfig {
  const workers = isLocal ? 1 : (workersFlag ?? config.operational.workers)
  return workers === undefined ? config : { ...config, operational: { ...config.operational, workers } }
}

function withAudit(config: VmcpConfig): VmcpConfig {
  return {
    ...config,
    audit: {
      enabled: true,
      component: 'vmcp-server',
      detectApplicationErrors: true,
      includeRequestData: false,
      includeResponseData: false,
      maxDataSize: 1024,
      policyInputs: 'none',
      maxDelegationDepth: 10,
    },
  }
}

async function serve(options: ServeOptions, debug: boolean): Promise<void> {
  const env = environment()
  const { workers, ...settings } = serveSettings(options, env)
  const lockStore =
    options.pinFirst === undefined
      ? undefined
      : (await import('../../tools/lock/index.ts')).lockFolder(options.pinFirst)
  const isLocal = env[vmcpEnvironment.consoleToken] !== undefined
  let reported: number | undefined
  process.exitCode = await serveVmcp({
    read: () => {
      const read = readConfig(options)
      const { workers: wanted = 1 } = read.config.operational
      if (isLocal && wanted > 1 && wanted !== reported) {
        reported = wanted
        printError(
          `operational.workers is ${wanted}, but gatehouse dev runs the virtual server in one process`,
        )
      }
      const config = withWorkers(read.config, workers, isLocal)
      return { ...read, config: lockStore ? lockStore.with(config) : config }
    },
    lockKeeper: lockStore,
    path: options.config,
    authServerFile: authServerFileBeside(options.config),
    env,
    ...settings,
    debug,
    version,
  })
}

function describe(config: VmcpConfig): void {
  print(
    [
      `name:                ${config.name}`,
      `group:               ${config.groupRef}`,
      `incoming auth:       ${config.incomingAuth.type}`,
      `outgoing auth:       ${config.outgoingAuth.source}`,
      `conflict resolution: ${config.aggregation.conflictResolution}`,
      `backends:            ${config.backends?.length ?? 0}`,
      `workflows:           ${config.compositeTools?.length ?? 0}`,
      'the configuration is valid',
    ].join('\n'),
  )
}
