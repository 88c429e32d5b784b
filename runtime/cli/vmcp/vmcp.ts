/**
 * `gatehouse vmcp serve|validate|init`: many MCP servers behind one address.
 *
 * `serve` runs in the foreground until SIGINT or SIGTERM and reloads changes of its configuration file without a
 * restart. A changed file with errors is reported and left alone; the running configuration goes on.
 * Source: docs/specification/virtual-server.md; runtime/config/vmcp/file.ts for the file.
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
import { version } from '../../toolkit/terminal/version.ts'
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
  'a backend as name=URL, repeatable; a path that ends in /sse means the HTTP+SSE (deprecated) transport'

export function addVmcpCommand(program: Command): void {
  const vmcp = program
    .command('vmcp')
    .summary('many MCP servers behind one address')
    .description('Runs and prepares virtual MCP servers.')
  addServe(vmcp)
  vmcp
    .command('validate')
    .summary('check a configuration file')
    .description('Runs every check that serve makes before it starts.')
    .requiredOption('-c, --config <file>', 'configuration file')
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
    .description('Writes a configuration file for serve. A file that is there already stays.')
    .requiredOption('-g, --group <name>', 'name of the group of backends')
    .option('--backend <name=url>', backendHelp, collect, [])
    .option('-o, --output <file>', 'file to write; - is standard output (default: -)')
    .addOption(new Option('-c, --config <file>', 'another name of --output').conflicts('output'))
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
      'Serves the backends of a configuration file, or those of --backend, behind one address until it is stopped.',
    )
    .option('-c, --config <file>', 'configuration file; it is watched for changes')
    .option('--group <name>', 'without a file: name of the group, with --backend')
    .option('--backend <name=url>', backendHelp, collect, [])
    .option('--host <address>', 'address to bind', '127.0.0.1')
    .option('--port <number>', 'port to bind; 0 lets the system choose', '4483')
    .option('--tls-cert-file <file>', 'serve HTTPS with this certificate, PEM; reloaded when it changes')
    .option('--tls-key-file <file>', 'its private key, PEM, without a passphrase')
    .option('--session-ttl <duration>', 'life of a session without use (default: 30m)')
    .option(
      '--max-sessions <number>',
      'sessions held at a time (default: 10000; 1000 with Redis, where the others wait in the store)',
    )
    .option(
      '--workers <count>',
      'processes that share the port, for more than one core (default: 1, or as the file says)',
    )
    .option('--enable-audit', 'write an audit log when the file does not say otherwise', false)
    .option(
      '--optimizer',
      'clients see find_tool and call_tool in place of all tools, with search by words, when the file does not say otherwise',
      false,
    )
    .option(
      '--pin-first <folder>',
      'trust on first use: what a backend is first seen to offer is approved, its lock written to this folder, and enforced',
    )
    .option('--allowed-origins <origin>', 'browser origin that may connect; repeatable', collect, [])
    .addHelpText(
      'after',
      '\nExamples:\n  gatehouse vmcp serve --config vmcp.yaml\n' +
        '  gatehouse vmcp serve --group demo --backend files=http://127.0.0.1:8001/mcp --backend notes=http://127.0.0.1:8002/sse\n' +
        '\nEnvironment: GATEHOUSE_VMCP_SESSION_TTL and GATEHOUSE_VMCP_MAX_SESSIONS stand for the flags that are not given.\n' +
        '\nExit codes: 0 stopped by a signal, 1 failed, 2 wrong usage or configuration.',
    )
    .action(async (options: ServeOptions, command: Command) => {
      const inFile = options.config === undefined
      refuseIdle(command, [
        ['group', inFile, 'does nothing with --config, whose file has a group'],
        ['backend', inFile, 'does nothing with --config, whose file has the backends'],
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

/** Search by words: there is no service for a search by meaning. */
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

/** `gatehouse dev` runs each virtual server alone, with a console. */
function withWorkers(config: VmcpConfig, given: number | undefined, isLocal: boolean): VmcpConfig {
  const workers = isLocal ? 1 : (given ?? config.operational.workers)
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
  const place =
    options.pinFirst === undefined
      ? undefined
      : (await import('../../tools/lock/index.ts')).lockFolder(options.pinFirst)
  const isLocal = env[vmcpEnvironment.consoleToken] !== undefined
  let told: number | undefined
  process.exitCode = await serveVmcp({
    read: () => {
      const read = readConfig(options)
      const { workers: wanted = 1 } = read.config.operational
      if (isLocal && wanted > 1 && wanted !== told) {
        told = wanted
        printError(`operational.workers is ${wanted}: gatehouse dev runs the virtual server in one process`)
      }
      const config = withWorkers(read.config, workers, isLocal)
      return { ...read, config: place ? place.with(config) : config }
    },
    lockKeeper: place,
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
