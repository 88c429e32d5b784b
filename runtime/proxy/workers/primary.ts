/**
 * The process that owns several workers: starts them, keeps them, holds what they share (the login, the sessions, the
 * metrics port) and ends them in good order. It answers no request itself.
 *
 * A worker that dies is replaced, after growing waits when it dies early.
 */
import cluster, { type Worker } from 'node:cluster'
import { setTimeout as sleep } from 'node:timers/promises'
import { LRUCache } from 'lru-cache'
import type { ServedCertificate } from '../../../schemas/certificate/index.ts'
import { GatehouseError } from '../../../schemas/index.ts'
import type { ProxySettings } from '../../config/index.ts'
import { type Listener, makeDispatcher } from '../../net/index.ts'
import type { Challenge } from '../../oauth/index.ts'
import { makeEvents, openServingCertificate } from '../../observe/index.ts'
import type { TargetLogin } from '../login/login.ts'
import { certificateMetrics, isCounts, mergedMetrics, serveMetrics } from '../metrics.ts'
import { makeLogin, type MadeLogin } from '../remote.ts'
import { resolveHost, type RunningCommand } from '../run.ts'
import type { RunParts } from '../run-parts.ts'
import type { ProxiedSessionRecord } from '../session/sessions.ts'
import { type WorkerChannel, isObject, type Line, openChannel } from './channel.ts'
import type { LoginState } from './remote-login.ts'
import { isRecord } from './worker.ts'

const maxSessions = 100_000
const earlyDeathMs = 10_000
const longestWaitMs = 30_000

/** Starts `config.workers` processes with the arguments of this one. Rejects when the first ones cannot serve. */
export async function runPrimary(config: ProxySettings, parts: RunParts): Promise<RunningCommand> {
  for (const warning of config.warnings) parts.log.warn(warning)
  if (!config.oidc)
    parts.log.warn('no --oidc-* flag is given: everybody who reaches this port may use the proxy')
  const host = await resolveHost(config.host)
  const dispatcher = makeDispatcher({
    origin: config.target.origin,
    ca: config.remoteCa,
    proxy: config.proxyEnvironment,
  })
  const made =
    config.remote.kind === 'oauth' ? await makeLogin(config, config.remote, parts, dispatcher) : undefined
  // Workers have their own; what becomes of the files is told once, from here.
  const certificate = config.tls && openServingCertificate(config.tls, parts.events ?? makeEvents())
  const primary = new Primary(config, parts, made)
  try {
    const address = await primary.start()
    certificate?.look()
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

class Primary {
  readonly #config: ProxySettings
  readonly #parts: RunParts
  readonly #made: MadeLogin | undefined
  readonly #workers = new Map<Worker, WorkerChannel>()
  readonly #sessions = new LRUCache<string, ProxiedSessionRecord>({
    max: maxSessions,
    ttl: 7_200_000,
    updateAgeOnGet: true,
  })
  #closing = false

  constructor(config: ProxySettings, parts: RunParts, made: MadeLogin | undefined) {
    this.#config = config
    this.#parts = parts
    this.#made = made
  }

  async start(): Promise<{ url: string; port: number }> {
    cluster.setupPrimary({ serialization: 'advanced' })
    // One after the other: with port 0 the first one's choice is everybody's.
    let address = await this.#fork()
    for (let i = 1; i < this.#config.workers; i++) address = await this.#fork()
    return address
  }

  async signIn(): Promise<void> {
    await this.#made?.login.start()
    await this.#tell()
  }

  async serveMetrics(host: string, certificate?: ServedCertificate): Promise<Listener | undefined> {
    const { metricsPort } = this.#config
    if (metricsPort === undefined) return undefined
    const channels = this.#workers
    const render = async (): Promise<string> => {
      const counts = await Promise.all(
        [...channels.values()].map((channel) => channel.call('metrics').catch(() => undefined)),
      )
      const { version } = this.#parts
      const merged = mergedMetrics(counts.filter(isCounts), { version, workers: channels.size })
      return certificateMetrics(certificate) + merged
    }
    return serveMetrics({ render }, { host, port: metricsPort, certificate }, this.#parts.log)
  }

  /** Resolves when the worker listens; rejects when it cannot. */
  #fork(): Promise<{ url: string; port: number }> {
    return new Promise((resolve, reject) => {
      const worker = cluster.fork()
      const startedAt = performance.now()
      const channel = openChannel(lineOf(worker), {
        ...this.#offers(),
        listening(argument) {
          if (isObject(argument)) resolve({ url: String(argument['url']), port: Number(argument['port']) })
        },
        failed(argument) {
          const { message = 'a worker failed', ...fields } = isObject(argument) ? argument : {}
          reject(Object.assign(new Error(String(message)), fields))
        },
      })
      this.#workers.set(worker, channel)
      worker.once('exit', (code) => {
        this.#workers.delete(worker)
        reject(new Error(`a worker ended with code ${code} before it served`))
        if (!this.#closing) void this.#replace(performance.now() - startedAt)
      })
    })
  }

  async #replace(livedMs: number, attempt = 0): Promise<void> {
    this.#parts.log.error('a worker died and is replaced', { livedMs: Math.round(livedMs) })
    if (livedMs < earlyDeathMs) await sleep(Math.min(1_000 * 2 ** attempt, longestWaitMs))
    if (this.#closing) return
    try {
      await this.#fork()
      await this.#tell()
    } catch {
      // Its end starts the next attempt.
    }
  }

  /** What workers may call. */
  #offers(): Record<string, (argument: unknown) => unknown> {
    const sessions = this.#sessions
    return {
      token: async () => this.#state(),
      refused: async (argument) => this.#refused(argument),
      'session.get': (key) => sessions.get(String(key)),
      'session.set'(argument) {
        if (isObject(argument) && isRecord(argument['record']))
          sessions.set(String(argument['key']), argument['record'])
      },
      'session.delete': (key) => void sessions.delete(String(key)),
    }
  }

  async #state(): Promise<LoginState> {
    const login = this.#login()
    const token = await login.token()
    return { known: true, token, idToken: login.idToken, expiresAt: login.expiresAt }
  }

  async #refused(argument: unknown): Promise<LoginState> {
    if (!isObject(argument)) throw new GatehouseError('INTERNAL')
    const { status, challenge, url, usedToken } = argument
    const bearer = isChallenge(challenge) ? challenge : undefined
    if (!this.#login().concerns(Number(status), bearer)) throw new GatehouseError('BACKEND_AUTH_FAILED')
    await this.#login().refused(
      Number(status),
      bearer,
      String(url),
      typeof usedToken === 'string' ? usedToken : undefined,
    )
    const state = await this.#state()
    await this.#tell()
    return state
  }

  #login(): TargetLogin {
    if (!this.#made) throw new GatehouseError('INTERNAL')
    return this.#made.login
  }

  async #tell(): Promise<void> {
    if (!this.#made) return
    const state = await this.#state().catch((): LoginState => ({ known: false }))
    await Promise.all(
      [...this.#workers.values()].map((channel) => channel.call('login', state).catch(() => undefined)),
    )
  }

  async close(graceMs: number): Promise<void> {
    this.#closing = true
    const ends = [...this.#workers.keys()].map(
      (worker) => new Promise((resolve) => worker.once('exit', resolve)),
    )
    await Promise.all(
      [...this.#workers.values()].map((channel) => channel.call('close', { graceMs }).catch(() => undefined)),
    )
    const cut = setTimeout(() => {
      for (const worker of this.#workers.keys()) worker.process.kill('SIGKILL')
    }, graceMs + 2_000)
    await Promise.all(ends)
    clearTimeout(cut)
    this.#made?.stop.abort(new Error('the proxy is ending'))
    this.#made?.login.close()
    await this.#made?.fetch.close()
  }
}

function lineOf(worker: Worker): Line {
  return {
    send(message) {
      if (worker.isConnected()) worker.send(message)
    },
    onMessage: (listener) => void worker.on('message', listener),
    onEnd: (listener) => void worker.once('exit', listener),
  }
}

function isChallenge(value: unknown): value is Challenge {
  return isObject(value) && typeof value['scheme'] === 'string' && value['params'] instanceof Map
}
