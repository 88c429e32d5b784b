/**
 * The process that manages a proxy's workers and their shared state: the login, the sessions and the metrics port. This
 * process does not serve requests itself.
 */
import { LRUCache } from 'lru-cache'
import type { ServedCertificate } from '../../../schemas/certificate/index.ts'
import { GatehouseError, isFields } from '../../../schemas/index.ts'
import type { ProxySettings } from '../../config/index.ts'
import { type Listener, listenerUrl, makeDispatcher } from '../../net/index.ts'
import { type Challenge, maxMarks } from '../../oauth/index.ts'
import { makeEvents, openServingCertificate } from '../../observe/index.ts'
import { type Handlers, Workers } from '../../process/index.ts'
import type { OwnLogin } from '../../outgoing/index.ts'
import type { StoreCall } from '../../store/index.ts'
import { certificateMetrics, isCounts, mergedMetrics, serveMetrics } from '../server/metrics.ts'
import { makeLogin, type MadeLogin } from '../run/remote.ts'
import { resolveHost, type RunningCommand, targetTls } from '../run/run.ts'
import type { RunParts } from '../run/run-parts.ts'
import type { ProxiedSessionRecord } from '../session/sessions.ts'
import type { LoginState } from './remote-login.ts'
import { isRecord } from './worker.ts'

const maxSessions = 100_000

/**
 * Starts `config.workers` processes, with this process's arguments. Rejects when the first processes cannot serve
 * requests.
 */
export async function runPrimary(config: ProxySettings, parts: RunParts): Promise<RunningCommand> {
  for (const warning of config.warnings) parts.log.warn(warning)
  if (!config.oidc && !parts.localTokens)
    parts.log.warn('no --oidc-* flag set; every client that reaches this port may use the proxy')
  const host = await resolveHost(config.host)
  const dispatcher = makeDispatcher({
    origin: config.target.origin,
    ca: config.remoteCa,
    tls: targetTls(config, parts.log),
    proxy: config.proxyEnvironment,
  })
  const made =
    config.remote.kind === 'oauth' ? await makeLogin(config, config.remote, parts, dispatcher) : undefined
  // Workers read the certificate files themselves; only the primary reports events about them.
  const certificate = config.tls && openServingCertificate(config.tls, parts.events ?? makeEvents())
  const primary = new Primary(config, parts, made)
  try {
    const address = await primary.start(host)
    certificate?.checkFiles()
    const metrics = await primary.serveMetrics(host, certificate)
    return {
      ...address,
      ready: primary.signIn(),
      async close(options) {
        await metrics?.close({ graceMs: 0 })
        certificate?.close()
        await primary.close(options?.graceMs ?? 0)
        await dispatcher.destroy()
      },
    }
  } catch (error) {
    certificate?.close()
    await primary.close(0)
    await dispatcher.destroy()
    throw error
  }
}

type ServedStore = (call: StoreCall) => Promise<unknown>

class Primary {
  readonly #config: ProxySettings
  readonly #parts: RunParts
  readonly #made: MadeLogin | undefined
  readonly #sessions = new LRUCache<string, ProxiedSessionRecord>({
    max: maxSessions,
    ttl: 7_200_000,
    updateAgeOnGet: true,
  })
  #workers: Workers | undefined
  #proofStore: Promise<ServedStore> | undefined

  constructor(config: ProxySettings, parts: RunParts, made: MadeLogin | undefined) {
    this.#config = config
    this.#parts = parts
    this.#made = made
  }

  async start(host: string): Promise<{ url: string; port: number }> {
    const { port, workers: count, tls } = this.#config
    this.#workers = await Workers.start({
      host,
      port,
      count,
      log: this.#parts.log,
      offers: this.#offers(),
      onReplaced: () => this.#tell(),
    })
    const bound = this.#workers.address
    return { url: listenerUrl({ ...bound, secure: tls !== undefined }), port: bound.port }
  }

  async signIn(): Promise<void> {
    await this.#made?.login.start()
    await this.#tell()
  }

  async serveMetrics(host: string, certificate?: ServedCertificate): Promise<Listener | undefined> {
    const { metricsPort } = this.#config
    if (metricsPort === undefined) return undefined
    const render = async (): Promise<string> => {
      const counts = (await this.#workers?.ask('metrics')) ?? []
      const { version } = this.#parts
      const merged = mergedMetrics(counts.filter(isCounts), { version, workers: this.#workers?.size ?? 0 })
      return certificateMetrics(certificate) + merged
    }
    return serveMetrics({ render }, { host, port: metricsPort, certificate }, this.#parts.log)
  }

  /** The functions that workers may call. */
  #offers(): Handlers {
    const sessions = this.#sessions
    return {
      token: async () => this.#state(),
      refused: async (argument) => this.#refused(argument),
      'session.get': (key) => sessions.get(String(key)),
      'session.set'(argument) {
        if (isFields(argument) && isRecord(argument['record']))
          sessions.set(String(argument['key']), argument['record'])
      },
      'session.delete': (key) => void sessions.delete(String(key)),
      'store.proofs': async (call) => (await this.#proofs())(call as StoreCall),
    }
  }

  /** Opens the store for used DPoP proofs. Loaded on demand, because most proxies do not use it. */
  #proofs(): Promise<ServedStore> {
    this.#proofStore ??= import('../../store/index.ts').then(({ makeMemoryStore, serveStore }) =>
      serveStore(makeMemoryStore({ maxEntries: maxMarks })),
    )
    return this.#proofStore
  }

  async #state(): Promise<LoginState> {
    const login = this.#login()
    const token = (await login.token())?.value
    const { proofKey, idToken, usableUntil } = login
    return { known: true, token, proofKey, idToken, usableUntil }
  }

  async #refused(argument: unknown): Promise<LoginState> {
    if (!isFields(argument)) throw new GatehouseError('INTERNAL')
    const { status, challenge, url, usedToken } = argument
    const known = isChallenge(challenge) ? challenge : undefined
    if (!this.#login().concerns(Number(status), known)) throw new GatehouseError('BACKEND_AUTH_FAILED')
    try {
      await this.#login().refused({
        status: Number(status),
        challenge: known,
        url: String(url),
        usedToken: typeof usedToken === 'string' ? usedToken : undefined,
      })
      return await this.#state()
    } finally {
      // Also send the state when the login has ended, because workers must not keep using the old token.
      await this.#tell()
    }
  }

  #login(): OwnLogin {
    if (!this.#made) throw new GatehouseError('INTERNAL')
    return this.#made.login
  }

  async #tell(): Promise<void> {
    if (!this.#made) return
    const state = await this.#state().catch((): LoginState => ({ known: false }))
    await this.#workers?.ask('login', state)
  }

  async close(graceMs: number): Promise<void> {
    await this.#workers?.close(graceMs)
    this.#made?.stop.abort(new Error('the proxy is shutting down'))
    this.#made?.login.close()
    await this.#made?.fetch.close()
  }
}

function isChallenge(value: unknown): value is Challenge {
  return isFields(value) && typeof value['scheme'] === 'string' && value['params'] instanceof Map
}
