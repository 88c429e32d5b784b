/**
 * Runs a virtual server with its embedded authorization server in this process until a signal arrives. Applies changes
 * made to the server's file.
 * Source: docs/reference/specification/virtual-server.md;
 * docs/reference/specification/external-auth.md#embeddedAuthServer, embeddedAuthServer.
 */
import type { CertificateFiles } from '../../../schemas/certificate/index.ts'
import { MergedPages, metricText, processText, serverMetrics } from '../../../schemas/metrics/index.ts'
import { isSwitchedOn, isFields } from '../../../schemas/index.ts'
import { checkAuthServer } from '../../authserver/index.ts'
import {
  type Environment,
  type ExcludedBackend,
  loadAuthServerConfig,
  readLocalTokens,
  shutdownGraceMs,
  type VmcpConfig,
  vmcpEnvironment,
  watchFile,
} from '../../config/index.ts'
import { type AuthServerFacts, providersOnly } from '../../incoming/index.ts'
import type { Log } from '../../net/index.ts'
import {
  type Events,
  logEvents,
  lostLogLines,
  makeEvents,
  openServingCertificate,
} from '../../observe/index.ts'
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
import { loginPath, withLoginPages } from './login-pages.ts'
import { bindError } from '../../toolkit/terminal/options.ts'

export interface ReadConfig {
  readonly config: VmcpConfig
  readonly checksum: string | undefined
  /** Backends in the file that were removed from the configuration because of errors. */
  readonly excluded: readonly ExcludedBackend[]
}

export interface ServedFile {
  /** Reads the configuration. Called at startup and after each change. Throws INVALID_CONFIG. */
  readonly read: () => ReadConfig
  /** File to watch; undefined when the configuration never changes. */
  readonly path: string | undefined
  readonly authServerFile: string | undefined
  readonly maxUpstreams?: number
  readonly env: Environment
}

/** Selects which problems with a single backend are errors. With `none`, the backend is excluded instead. */
export type BackendErrors = 'all' | 'none'

export interface CheckedConfig extends ReadConfig {
  /** Environment and authorization server that the configuration check used. */
  readonly parts: StartParts
}

/**
 * Runs every check that `serve` runs before it starts, then the checks in `more`. Throws an INVALID_CONFIG error that
 * lists the problems in both files.
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
  for (const check of more) await checks.run(check)
  checks.throwIfAny()
  // `loaded` is undefined only if there is a problem, in which case throwIfAny() throws.
  return { ...(loaded ?? read()), parts }
}

/** Replaces an authorization server whose file is invalid, to avoid follow-up errors. */
const anyProvider: UpstreamTokens = { get: async () => undefined }

function factsOf(path: string, env: Environment): AuthServerFacts | undefined {
  try {
    return loadAuthServerConfig(path, env)
  } catch {
    // Ignores the error, which the check for that file reports.
    return undefined
  }
}

export interface ServeCommandOptions
  extends ServedFile,
    Pick<StartOptions, 'host' | 'port' | 'allowedOrigins'> {
  readonly debug: boolean
  /** Stores newly created locks for backends that do not have a lock. */
  readonly lockKeeper?: LockKeeper | undefined
  readonly version: string
  /** Certificate files; undefined for plain HTTP. */
  readonly tls: CertificateFiles | undefined
  readonly sessionTtlMs?: number | undefined
  readonly maxSessions?: number | undefined
}

/** Serves until a signal arrives, then resolves with the exit code. */
export async function serveVmcp(options: ServeCommandOptions): Promise<number> {
  const graceMs = shutdownGraceMs(options.env)
  const read = await readChecked(options, 'none')
  const { operational } = read.config
  const verbose =
    options.debug || isSwitchedOn(options.env, vmcpEnvironment.debug) || operational.logLevel === 'debug'
  const log = commandLog({ level: verbose ? 'debug' : 'info', name: 'vmcp' })
  const events = makeEvents()
  const stopLog = logEvents(events, log)
  const context = { log, events, graceMs }
  if (isWorker) await serveWorker(options, read, context)
  else if ((operational.workers ?? 1) > 1) await servePrimary(options, read, context)
  else
    await serveOne(options, read, context, async () => {
      await stopSignal(new AbortController())
      log.info('stopping')
      return { graceMs }
    })
  stopLog()
  log.flush()
  return exitCode.ok
}

interface ServeContext {
  readonly log: Log
  readonly events: Events
  /** Time limit for calls in flight at shutdown; undefined for the server's default. */
  readonly graceMs: number | undefined
}

/** Serves until `until` settles. The result of `until` limits how long requests in flight can continue. */
async function serveOne(
  options: ServeCommandOptions,
  read: ReadConfig,
  { log, events, graceMs }: ServeContext,
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
    const localTokens = readLocalTokens(env)
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
      authServer: withLoginPages(authServer, env),
      localTokens: localTokens && { digests: localTokens, openPaths: openPathsOf(read.config) },
      recorder: console?.recorder,
      worker,
    }
    const server = await startVmcp(read.config, {
      ...start,
      configChecksum: read.checksum,
      excluded: read.excluded,
    }).catch(rethrowStartError)
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

/** Pages that check a key in their address, because a browser cannot send a token. */
const pagesWithKey = ['/sign-in/']

/**
 * Returns the prefixes of the paths that do not require the local token. If the server requires a login, these include
 * the MCP endpoint, which authenticates every request, and the login's pages and documents.
 */
function openPathsOf({ incomingAuth }: VmcpConfig): readonly string[] {
  if (incomingAuth.type !== 'oidc') return pagesWithKey
  return [...pagesWithKey, '/mcp', '/sse', '/messages', '/oauth/', '/.well-known/', loginPath]
}

function rethrowStartError(error: unknown): never {
  throw bindError(error, 'the virtual server')
}

/** Manages the worker processes and their shared memory. Serves no requests. */
async function servePrimary(
  { host, port = vmcpDefaults.port, version }: ServeCommandOptions,
  { config, parts }: CheckedConfig,
  { log, graceMs }: ServeContext,
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
      metrics: cacheBriefly(async () => {
        const texts = (await workers.ask('metrics.text')).filter(isText)
        return pages.render(
          new Map([
            ...texts.map(({ id, text }): [string, string] => [id, text]),
            ['', processText(version) + metricText(serverMetrics.logLinesLost, [[lostLogLines()]])],
          ]),
        )
      }),
    },
  }).catch(rethrowStartError)
  log.info('several processes serve the virtual MCP server', { ...workers.address, workers: count })
  await stopped
  log.info('stopping')
  await workers.close(graceMs ?? vmcpDefaults.graceMs)
}

/** Cache lifetime of the merged metrics. */
const pageMs = 1_000

/** Caches the result of `work` for `pageMs` milliseconds. */
function cacheBriefly<T>(work: () => Promise<T>): () => Promise<T> {
  let cached: { readonly at: number; readonly result: Promise<T> } | undefined
  return () => {
    if (!cached || performance.now() - cached.at > pageMs) cached = { at: performance.now(), result: work() }
    return cached.result
  }
}

function isText(value: unknown): value is { readonly id: string; readonly text: string } {
  return isFields(value) && typeof value['id'] === 'string' && typeof value['text'] === 'string'
}

/** Serves in a worker process until the primary stops the worker. */
async function serveWorker(
  options: ServeCommandOptions,
  read: ReadConfig,
  context: ServeContext,
): Promise<void> {
  // Ignores the signal, which a terminal sends to all processes of the group. The primary process stops this worker.
  void stopSignal(new AbortController())
  await serveAsWorker(async (link) => {
    const started = Promise.withResolvers<VmcpServer>()
    const stop = Promise.withResolvers<{ readonly graceMs: number }>()
    const until = (server: VmcpServer) => {
      started.resolve(server)
      return stop.promise
    }
    const served = serveOne(options, read, context, until, { link, ...sharedMemory(link.channel) })
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
      // Prints nothing, because the server has already reported the error.
    }
  })
}

/**
 * Replaces the client's token with the upstream's token, unless the file configures other authentication for the
 * target.
 */
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
