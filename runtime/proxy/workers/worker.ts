/**
 * One of several processes that serve the same port. The login, the shared sessions and the metrics are the primary's;
 * everything else is as in a single process.
 */
import type { ProxySettings } from '../../config/index.ts'
import type { ProxyMetrics } from '../metrics.ts'
import { makeProxyMetrics } from '../metrics.ts'
import { type RunningCommand, runProxy } from '../run.ts'
import type { RunParts } from '../run-parts.ts'
import type { ProxiedSessionRecord, SharedSessions } from '../session/sessions.ts'
import { type WorkerChannel, isObject, type Line, openChannel } from './channel.ts'
import { RemoteLogin } from './remote-login.ts'

/** Serves until the primary says otherwise. Resolves when everything is closed. */
export async function runWorker(config: ProxySettings, parts: RunParts): Promise<void> {
  const metrics = config.metricsPort === undefined ? undefined : makeProxyMetrics(parts.version)
  const ended = Promise.withResolvers<void>()
  let proxy: RunningCommand | undefined

  async function close(argument: unknown): Promise<void> {
    const graceMs = isObject(argument) ? Number(argument['graceMs']) : 0
    await proxy?.close({ graceMs })
    ended.resolve()
  }
  const line = processLine()
  const handlers: Record<string, (argument: unknown) => unknown> = {
    close,
    login: (state) => login.update(state),
    metrics: () => metrics?.counts(),
  }
  const channel = openChannel(line, handlers)
  const login = new RemoteLogin(channel)
  line.onEnd(() => void close({ graceMs: 0 }))
  try {
    proxy = await runProxy(
      { ...config, metricsPort: undefined, warnings: [] },
      { ...parts, ...ofPrimary(config, channel, login, metrics) },
    )
    await channel.call('listening', { url: proxy.url, port: proxy.port })
  } catch (error) {
    await channel.call('failed', toFields(error))
    throw error
  }
  await ended.promise
  process.disconnect()
}

function ofPrimary(
  config: ProxySettings,
  channel: WorkerChannel,
  login: RemoteLogin,
  metrics: ProxyMetrics | undefined,
): Partial<RunParts> {
  return {
    quiet: true,
    ...(config.remote.kind === 'oauth' ? { tokens: login } : {}),
    ...(config.sessionStorage?.provider === 'redis' ? {} : { sessions: sessionsOf(channel) }),
    ...(metrics ? { observe: metrics.observe } : {}),
  }
}

/** An error as plain fields, those of the system among them. */
function toFields(error: unknown): Record<string, unknown> {
  if (!(error instanceof Error)) return { message: String(error) }
  const { code, syscall, address, port }: NodeJS.ErrnoException & { address?: string; port?: number } = error
  return { message: error.message, code, syscall, address, port }
}

function sessionsOf(channel: WorkerChannel): SharedSessions {
  return {
    async get(key) {
      const record = await channel.call('session.get', key)
      return isRecord(record) ? record : undefined
    },
    async set(key, record) {
      await channel.call('session.set', { key, record })
    },
    async delete(key) {
      await channel.call('session.delete', key)
    },
    close: async () => {},
  }
}

export function isRecord(value: unknown): value is ProxiedSessionRecord {
  return isObject(value) && typeof value['upstreamId'] === 'string'
}

function processLine(): Line {
  return {
    send(message) {
      if (process.connected) process.send?.(message)
    },
    onMessage: (listener) => void process.on('message', listener),
    onEnd: (listener) => void process.once('disconnect', listener),
  }
}
