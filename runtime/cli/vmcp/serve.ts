/**
 * Runs a virtual server in this process with everything that belongs to it, until a signal: its embedded authorization
 * server, and changes of its file.
 * Source: docs/specification/virtual-server.md; docs/specification/external-auth.md#embeddedAuthServer, embeddedAuthServer.
 */
import type { CertificateFiles } from '../../../schemas/certificate/index.ts'
import { MergedPages, processText } from '../../../schemas/metrics/index.ts'
import { isSwitchedOn, isFields } from '../../../schemas/index.ts'
import { checkAuthServer } from '../../authserver/index.ts'
import {
  type Environment,
  type ExcludedBackend,
  loadAuthServerConfig,
  shutdownGraceMs,
  type VmcpConfig,
  vmcpEnvironment,
  watchFile,
} from '../../config/index.ts'
import { type AuthServerFacts, providersOnly } from '../../incoming/index.ts'
import type { Log } from '../../net/index.ts'
import { type Events, logEvents, makeEvents, openServingCertificate } from '../../observe/index.ts'
import type { UpstreamTokens } from '../../outgoing/index.ts'
import type { Store } from '../../store/index.ts'
import {
  checkAll,
  checkStart,
  checkToolLocks,
  type LockKeeper,
  type ServingWorker,
  type StartOptions,
  type StartParts,
  startVmcp,
  startWarnings,
  vmcpDefaults,
  type VmcpServer,
} from '../../vmcp/index.ts'
import { isWorker, serveAsWorker, Workers } from '../../process/index.ts'
import { commandLog } from '../../toolkit/terminal/log.ts'
import { exitCode } from '../../toolkit/terminal/output.ts'
import { stopSignal } from '../../toolkit/terminal/stop.ts'
import { offerMemory, sharedMemory } from './shared-memory.ts'
import { Checks, withAuthServer } from './auth-server.ts'
import { prepareConsole } from './console.ts'
import { bindError } from '../../toolkit/terminal/options.ts'

export interface ReadConfig {
  readonly config: VmcpConfig
  readonly checksum: string | undefined
  /** Backends of the file that the configuration is without. */
  readonly excluded: readonly ExcludedBackend[]
}

export interface ServedFile {
  /** Reads the configuration, also after a change. Throws INVALID_CONFIG. */
  readonly read: () => ReadConfig
  /** The file to watch; undefined: the configuration never changes. */
  readonly path: string | undefined
  readonly authServerFile: string | undefined
  readonly maxUpstreams?: number
  readonly env: Environment
}

/** Which problems of single backends are errors: all of them, or none, because such a backend is excluded. */
export type BackendErrors = 'all' | 'none'

export interface CheckedConfig extends ReadConfig {
  /** Environment and authorization server that the configuration was checked against. */
  readonly parts: StartParts
}

/**
 * Runs every check that `serve` runs before it starts, then the checks of `more`. Throws INVALID_CONFIG with the
 * problems of both files.
 */
export async function readChecked(
  file: Omit<ServedFile, 'path'>,
  backendErrors: BackendErrors,
  more: readonly (() => unknown)[] = [],
): Promise<CheckedConfig> {
  const { read, authServerFile, env } = file
  const check = backendErrors === 'all' ? checkAll : checkStart
  const checks = new Checks()
  const loaded = await checks.run(read)
  let parts: StartParts = { env }
  if (authServerFile !== undefined) {
    const limits = file.maxUpstreams === undefined ? {} : { maxUpstreams: file.maxUpstreams }
    await checks.run(() => checkAuthServer(authServerFile, env, limits))
    const authServer = factsOf(authServerFile, env)
    parts = { env, authServer, upstreamTokens: authServer ? providersOnly(authServer) : anyProvider }
  }
  if (loaded) {
    await checks.run(() => check(loaded.config, parts, loaded.excluded))
    await checks.run(() => checkToolLocks(loaded.config))
  }
  for (const one of more) await checks.run(one)
  checks.throwIfAny()
  // `loaded` is only undefined if there is a problem, and then throwIfAny() throws.
  return { ...(loaded ?? read()), parts }
}

/** Stands for a server whose file has errors: they are known, and others must not follow from them. */
const anyProvider: UpstreamTokens = { get: async () => undefined }

function factsOf(path: string, env: Environment): AuthServerFacts | undefined {
  try {
    return loadAuthServerConfig(path, env)
  } catch {
    // Reported by the check of that file.
    return undefined
  }
}

export interface ServeCommandOptions
  extends ServedFile,
    Pick<StartOptions, 'host' | 'port' | 'allowedOrigins'> {
  readonly debug: boolean
  /** Stores locks of backends that have none. */
  readonly lockKeeper?: LockKeeper | undefined
  readonly version: string
  /** Undefined: plain HTTP. */
  readonly tls: CertificateFiles | undefined
  readonly sessionTtlMs?: number | undefined
  readonly maxSessions?: number | undefined
}

/** Serves until a signal. Resolves with the exit code. */
export async function serveVmcp(options: ServeCommandOptions): Promise<number> {
  const graceMs = shutdownGraceMs(options.env)
  const read = await readChecked(options, 'none')
  const { operational } = read.config
  const verbose =
    options.debug || isSwitchedOn(options.env, vmcpEnvironment.debug) || operational.logLevel === 'debug'
  const log = commandLog({ level: verbose ? 'debug' : 'info', name: 'vmcp' })
  const events = makeEvents()
  const stopLog = logEvents(events, log)
  const told = { log, events, graceMs }
  if (isWorker) await serveWorker(options, read, told)
  else if ((operational.workers ?? 1) > 1) await servePrimary(options, read, told)
  else
    await serveOne(options, read, told, async () => {
      await stopSignal(new AbortController())
      log.info('stopping')
      return { graceMs }
    })
  stopLog()
  log.flush()
  return exitCode.ok
}

interface Told {
  readonly log: Log
  readonly events: Events
  /** Undefined: the default of the server. */
  readonly graceMs: number | undefined
}

/** Serves until `until` is settled, with the time that requests in flight have from then on. */
async function serveOne(
  options: ServeCommandOptions,
  read: ReadConfig,
  { log, events, graceMs }: Told,
  until: (server: VmcpServer) => Promise<{ readonly graceMs: number | undefined }>,
  worker?: ServingWorker & { readonly logins: Store },
): Promise<void> {
  const { env, authServerFile, maxUpstreams } = options
  const parts = {
    log,
    events,
    env,
    audit: read.config.audit,
    ...(maxUpstreams === undefined ? {} : { maxUpstreams }),
    shared: worker?.logins,
  }
  const certificate = options.tls && openServingCertificate(options.tls, events)
  await withAuthServer(authServerFile, parts, async (authServer) => {
    const { host, port, version, allowedOrigins, sessionTtlMs, maxSessions, lockKeeper } = options
    const console = await prepareConsole({ env, config: read.config, events, log, certificate })
    const start = {
      host,
      port,
      certificate,
      log,
      events,
      version,
      env,
      allowedOrigins,
      sessionTtlMs,
      maxSessions,
      graceMs,
      lockKeeper,
      authServer,
      recorder: console?.recorder,
      worker,
    }
    const server = await startVmcp(read.config, {
      ...start,
      configChecksum: read.checksum,
      excluded: read.excluded,
    }).catch(notStarted)
    let end: { readonly graceMs: number | undefined } = { graceMs }
    try {
      const opened = await console?.open(server)
      const stopWatching = watch(options, server, events)
      end = await until(server)
      stopWatching()
      await opened?.close()
    } finally {
      await server.close(end)
    }
  }).finally(() => certificate?.close())
}

function notStarted(error: unknown): never {
  throw bindError(error, 'the virtual server')
}

/** Owns the processes that serve, with what they share; answers no request itself. */
async function servePrimary(
  { host, port = vmcpDefaults.port, version }: ServeCommandOptions,
  { config, parts }: CheckedConfig,
  { log, graceMs }: Told,
): Promise<void> {
  for (const warning of startWarnings(config, parts)) log.warn(warning)
  const stopped = stopSignal(new AbortController())
  const pages = new MergedPages()
  const count = config.operational.workers ?? 1
  const workers: Workers = await Workers.start({
    host: host ?? '127.0.0.1',
    port,
    count,
    log,
    offers: {
      ...offerMemory(),
      metrics: briefly(async () => {
        const texts = (await workers.ask('metrics.text')).filter(isText)
        return pages.render(
          new Map([...texts.map(({ id, text }): [string, string] => [id, text]), ['', processText(version)]]),
        )
      }),
    },
  }).catch(notStarted)
  log.info('virtual MCP server is served by several processes', { ...workers.address, workers: count })
  await stopped
  log.info('stopping')
  await workers.close(graceMs ?? vmcpDefaults.graceMs)
}

/** How long the sum of all counts: whoever asks more often has no more of it. */
const pageMs = 1_000

/** The result of `work`, the same one for a moment. */
function briefly<T>(work: () => Promise<T>): () => Promise<T> {
  let made: { readonly at: number; readonly result: Promise<T> } | undefined
  return () => {
    if (!made || performance.now() - made.at > pageMs) made = { at: performance.now(), result: work() }
    return made.result
  }
}

function isText(value: unknown): value is { readonly id: string; readonly text: string } {
  return isFields(value) && typeof value['id'] === 'string' && typeof value['text'] === 'string'
}

/** One of the processes that serve, until its primary says otherwise. */
async function serveWorker(options: ServeCommandOptions, read: ReadConfig, told: Told): Promise<void> {
  // A terminal signals all processes at once; it is the primary that ends this one.
  void stopSignal(new AbortController())
  await serveAsWorker(async (link) => {
    const started = Promise.withResolvers<VmcpServer>()
    const stop = Promise.withResolvers<{ readonly graceMs: number }>()
    const until = (server: VmcpServer) => {
      started.resolve(server)
      return stop.promise
    }
    const served = serveOne(options, read, told, until, { link, ...sharedMemory(link.channel) })
    served.catch(started.reject)
    const { relayPort } = await started.promise
    return {
      peer: relayPort,
      async close(end) {
        stop.resolve(end)
        await served
      },
    }
  })
}

function watch({ path, read }: ServedFile, server: VmcpServer, events: Events): () => void {
  if (path === undefined) return () => {}
  return watchFile(path, () => {
    let changed: ReadConfig
    try {
      changed = read()
    } catch (error) {
      events.emit('config_refused', { err: error })
      return
    }
    const { config, ...file } = changed
    try {
      server.reload(config, file)
    } catch {
      // The server has told that it refuses the file.
    }
  })
}

/** The client's token is swapped for the upstream's, unless the file says how else the target is authenticated to. */
export function withSwap(
  config: VmcpConfig,
  authServerFile: string | undefined,
  env: Environment,
): VmcpConfig {
  const facts = authServerFile === undefined ? undefined : factsOf(authServerFile, env)
  const provider = facts?.upstreams[0]?.name
  if (provider === undefined || facts?.disableUpstreamTokenInjection || config.outgoingAuth.default) {
    return config
  }
  const swap = { type: 'upstream_inject' as const, upstreamInject: { providerName: provider } }
  return { ...config, outgoingAuth: { ...config.outgoingAuth, default: swap } }
}
