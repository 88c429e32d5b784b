#!/usr/bin/env node
/**
 * The `gatehouse-hooks` command: reads the flags and the environment, and serves the hooks until a signal stops it.
 *
 * No other file under `hooks/` reads the environment. Exit codes: 0 stopped by a signal, 1 failed, 2 invalid usage or
 * settings.
 */
import { Command, CommanderError, InvalidArgumentError, Option } from 'commander'
import { engineAnswers } from '../../schemas/cedar/index.ts'
import { type CertificateFiles, certificateEndsAt } from '../../schemas/certificate/index.ts'
import { addCertificatesCommand } from '../certificates/command.ts'
import { addCheckCommand } from '../check/command.ts'
import {
  isColoured,
  isDnsSubdomain,
  isSwitchedOn,
  logFormats,
  logLevels,
  type LogFormat,
  logFormatFor,
  type LogLevelName,
  switchViolation,
  GatehouseError,
  imageReference,
  invalidConfig,
} from '../../schemas/index.ts'
import { clusterEventWriter, type EventSink, eventSink } from './events.ts'
import { type HookLog, makeLog } from './log.ts'
import { HookMetrics } from './metrics.ts'
import { makeHooks } from '../registry/hook-registry.ts'
import { listen } from './listeners.ts'
import { type HookService, hooksApp } from './server.ts'
import { type DefaultRedis, type HookSettings, hookSettings } from '../base/settings.ts'
import { EvaluationWorker } from './workers.ts'
import { tokenReader } from './tokens.ts'

/**
 * Limits for the threads that evaluate large bodies. The heap limit is large enough for the largest accepted body and
 * its result. The process option --max-old-space-size, which the image sets, overrides it. The deadline matches the 10
 * s timeout of Metacontroller and the API server.
 */
const workerLimits = {
  hooks: { heapMb: 192, deadlineMs: 10_000 },
  reviews: { heapMb: 64, deadlineMs: 10_000 },
}

interface Flags {
  readonly host: string
  readonly port: number
  readonly hooksPort?: number
  readonly tlsCertFile?: string
  readonly tlsKeyFile?: string
  readonly clientCaFile?: string
  readonly tokenFile?: string
  readonly shutdownGrace: number
  readonly logFormat?: LogFormat
  readonly logLevel?: LogLevelName
}

/** All environment variables that this program reads. */
const variables = {
  GATEHOUSE_RUNTIME_IMAGE: 'image for generated pods',
  GATEHOUSE_VERSION: 'version of this build',
  GATEHOUSE_ENABLE_OBO: 'true enables the on-behalf-of handler',
  GATEHOUSE_DEFAULT_REDIS_ADDR:
    'address (host:port) of the default session store, for resources that do not configure a store',
  GATEHOUSE_DEFAULT_REDIS_SECRET_NAME:
    'Secret with the password of the default session store, in the namespace of the resource',
  GATEHOUSE_DEFAULT_REDIS_SECRET_KEY: 'key of the password in the Secret (redis-password)',
  GATEHOUSE_DEFAULT_IMAGE_PULL_SECRETS: 'pull secrets of generated pods, separated by commas',
  GATEHOUSE_OPENSHIFT: 'true lets the platform assign user IDs',
  GATEHOUSE_GATEWAY_API: 'true when the Gateway API is installed; enables HTTPRoutes',
  GATEHOUSE_STDIO_ATTACH: 'false disables attaching to containers; stdio servers then need a command',
  GATEHOUSE_CLUSTER_DOMAIN: 'DNS suffix of the cluster (cluster.local)',
} as const

type Environment = Readonly<Partial<Record<keyof typeof variables, string>>>

let log: HookLog = logOf({})

const program = new Command('gatehouse-hooks')
  .description('Serves the reconcile hooks and the admission webhook of Gatehouse.')
  .option('--host <host>', 'address to listen on', '127.0.0.1')
  .option('--port <number>', 'port to listen on; 0 lets the system choose', parsePort, 8743)
  .option(
    '--hooks-port <number>',
    'separate port for Metacontroller (/hooks); --port then only serves the API server (/validate)',
    parsePort,
  )
  .option('--tls-cert-file <file>', 'serving certificate, PEM; reloaded when it changes')
  .option('--tls-key-file <file>', 'its private key, PEM')
  .option(
    '--client-ca-file <file>',
    'CA certificate, PEM; callers of /validate must present a client certificate that it signed',
  )
  .option(
    '--token-file <file>',
    'bearer token that callers of /hooks must present; a second line adds a second token for rotation',
  )
  .option('--shutdown-grace <seconds>', 'time to finish open requests at shutdown', parseSeconds, 10)
  .addOption(
    new Option('--log-format <format>', 'log as text or JSON; default: text on a terminal').choices(
      logFormats,
    ),
  )
  .addOption(new Option('--log-level <level>', 'minimum level to log').choices(logLevels).default('info'))
  .showSuggestionAfterError()
  .exitOverride()
  .addHelpText('after', `\nEnvironment:\n${describeVariables()}`)
  .action((flags: Flags) => {
    log = logOf(flags)
    return serve(flags)
  })

addCertificatesCommand(program)
addCheckCommand(program)

// Ignores EPIPE and similar errors, because a closed output must not interrupt work such as a certificate rotation.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {})
try {
  await program.parseAsync()
} catch (error) {
  process.exitCode = codeOf(error)
}

function logOf({ logFormat, logLevel }: Pick<Flags, 'logFormat' | 'logLevel'>): HookLog {
  return makeLog(process.stderr, {
    now: () => new Date(),
    level: logLevel,
    format: logFormatFor(logFormat, process.stderr),
    colour: isColoured(process.stderr, process.env),
  })
}

function describeVariables(): string {
  return Object.entries(variables)
    .map(([name, meaning]) => `  ${name.padEnd(38)} ${meaning}`)
    .join('\n')
}

function parsePort(text: string): number {
  const port = Number(text)
  if (!Number.isInteger(port) || port < 0 || port > 65_535) throw new InvalidArgumentError('0 to 65535')
  return port
}

function parseSeconds(text: string): number {
  const seconds = Number(text)
  if (!Number.isFinite(seconds) || seconds < 0)
    throw new InvalidArgumentError('a number of seconds, 0 or more')
  return seconds
}

function codeOf(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2
  log('error', error instanceof Error ? error.message : String(error))
  return error instanceof GatehouseError && error.code === 'INVALID_CONFIG' ? 2 : 1
}

async function serve(flags: Flags): Promise<void> {
  const settings = settingsFrom(process.env)
  const files = certificateFiles(flags)
  let ready = true
  const events = await eventsOrNone()
  const tokens =
    flags.tokenFile === undefined
      ? undefined
      : tokenReader(flags.tokenFile, () =>
          log(
            'error',
            '--token-file is unreadable or empty; rejecting all callers of /hooks until it is restored',
          ),
        )
  const metrics = new HookMetrics({
    version: settings.version,
    certificateEndsAt: files && (() => certificateEndsAt(files)),
  })
  const onEngineFailures = (count: number): void => metrics.addEngineFailures(count)
  const workers = {
    hooks: new EvaluationWorker({ settings, onEngineFailures, ...workerLimits.hooks }),
    reviews: new EvaluationWorker({ settings, onEngineFailures, ...workerLimits.reviews }),
  }
  const shared = {
    registry: makeHooks(settings),
    metrics,
    workers,
    log,
    seconds: () => performance.now() / 1000,
    notReady: () => (ready ? engineReason() : 'shutting down'),
    clientCertificate: files?.clientCaFile !== undefined,
    ...(tokens && { tokens }),
    ...(events && { events }),
  }
  const listeners = await listen({
    host: flags.host,
    ports: portsOf(flags).map(({ port, serves }) => ({ port, app: hooksApp({ ...shared, serves }) })),
    files,
    onReloaded: () => log('info', 'the serving certificate was reloaded'),
    onUnusable: (reason) =>
      log('error', 'the new serving certificate is invalid; keeping the old one', { reason }),
  })
  const [port, hooksPort] = listeners.ports
  log('info', 'listening', {
    host: flags.host,
    ...(port !== undefined && { port }),
    ...(hooksPort !== undefined && { hooks_port: hooksPort }),
    tls: files ? 'on' : 'off',
  })
  const signal = await waitForSignal()
  ready = false
  log('info', 'shutting down', { signal })
  await listeners.close(flags.shutdownGrace * 1000)
  await Promise.all([workers.hooks.close(), workers.reviews.close()])
}

function portsOf({ port, hooksPort }: Flags): { port: number; serves: readonly HookService[] }[] {
  if (hooksPort === undefined) return [{ port, serves: ['hooks', 'admission'] }]
  return [
    { port, serves: ['admission'] },
    { port: hooksPort, serves: ['hooks'] },
  ]
}

/** The server is not ready without the policy engine, because admission would reject every object with a policy. */
function engineReason(): string | undefined {
  return engineAnswers() ? undefined : 'the policy engine is not responding'
}

function settingsFrom(environment: Environment & NodeJS.ProcessEnv): HookSettings {
  const redis = defaultRedisFrom(environment)
  const version = environment.GATEHOUSE_VERSION ?? 'dev'
  return hookSettings({
    version,
    runtimeImage: environment.GATEHOUSE_RUNTIME_IMAGE ?? imageReference('gatehouse', version),
    enableObo: readSwitch(environment, 'GATEHOUSE_ENABLE_OBO'),
    openshift: readSwitch(environment, 'GATEHOUSE_OPENSHIFT'),
    gatewayApi: readSwitch(environment, 'GATEHOUSE_GATEWAY_API'),
    ...(environment.GATEHOUSE_STDIO_ATTACH && {
      stdioAttach: readSwitch(environment, 'GATEHOUSE_STDIO_ATTACH'),
    }),
    imagePullSecrets: secretNames(environment.GATEHOUSE_DEFAULT_IMAGE_PULL_SECRETS ?? ''),
    ...(environment.GATEHOUSE_CLUSTER_DOMAIN && { clusterDomain: environment.GATEHOUSE_CLUSTER_DOMAIN }),
    ...(redis && { defaultRedis: redis }),
  })
}

/** Parses the comma-separated names of Secrets. */
function secretNames(list: string): string[] {
  const names = list
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '')
  const wrong = names.find((name) => !isDnsSubdomain(name))
  if (wrong === undefined) return names
  throw invalidConfig(
    `GATEHOUSE_DEFAULT_IMAGE_PULL_SECRETS: ${JSON.stringify(wrong.slice(0, 80))} is not a valid Secret name; separate names with commas`,
  )
}

function readSwitch(environment: NodeJS.ProcessEnv, name: string): boolean {
  const problem = switchViolation(environment, name)
  if (problem !== undefined) throw invalidConfig(problem)
  return isSwitchedOn(environment, name)
}

function defaultRedisFrom(environment: Environment): DefaultRedis | undefined {
  const address = environment.GATEHOUSE_DEFAULT_REDIS_ADDR
  const secretName = environment.GATEHOUSE_DEFAULT_REDIS_SECRET_NAME
  const secretKey = environment.GATEHOUSE_DEFAULT_REDIS_SECRET_KEY
  if (!address) {
    if (secretName)
      throw invalidConfig('GATEHOUSE_DEFAULT_REDIS_SECRET_NAME requires GATEHOUSE_DEFAULT_REDIS_ADDR')
    return undefined
  }
  return { address, ...(secretName && { secretName }), ...(secretKey && { secretKey }) }
}

function certificateFiles({ tlsCertFile, tlsKeyFile, clientCaFile }: Flags): CertificateFiles | undefined {
  if (tlsCertFile !== undefined && tlsKeyFile !== undefined)
    return {
      certFile: tlsCertFile,
      keyFile: tlsKeyFile,
      ...(clientCaFile !== undefined && { clientCaFile }),
    }
  if (tlsCertFile !== undefined || tlsKeyFile !== undefined)
    throw invalidConfig('--tls-cert-file and --tls-key-file must be given together')
  if (clientCaFile !== undefined)
    throw invalidConfig('--client-ca-file requires --tls-cert-file and --tls-key-file')
  return undefined
}

/** Outside a cluster, there is no API server to write events to. */
async function eventsOrNone(): Promise<EventSink | undefined> {
  if (process.env['KUBERNETES_SERVICE_HOST'] === undefined) return undefined
  try {
    return eventSink(await clusterEventWriter(), log, () => new Date())
  } catch {
    log('warn', 'events are disabled: no cluster configuration')
    return undefined
  }
}

function waitForSignal(): Promise<string> {
  return new Promise((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve(signal))
  })
}
