/**
 * One of several processes that serve the same port. The primary owns the login, the shared sessions and the metrics;
 * everything else works as in a single process.
 */
import { isFields } from '../../../schemas/index.ts'
import type { ProxySettings } from '../../config/index.ts'
import { serveAsWorker, type WorkerChannel } from '../../process/index.ts'
import { makeProxyMetrics } from '../server/metrics.ts'
import { runProxy } from '../run/run.ts'
import type { RunParts } from '../run/run-parts.ts'
import type { ProxiedSessionRecord, SharedSessions } from '../session/sessions.ts'
import { RemoteLogin } from './remote-login.ts'

/** Serves until the primary stops it. Resolves when everything has been closed. */
export function runWorker(config: ProxySettings, parts: RunParts): Promise<void> {
  return serveAsWorker(async ({ channel, connections, offer }) => {
    const metrics = config.metricsPort === undefined ? undefined : makeProxyMetrics(parts.version)
    const login = new RemoteLogin(channel)
    offer({ login: (state) => login.update(state), metrics: () => metrics?.counts() })
    // Loaded on demand, because most proxies do not use it.
    const store = config.dpop && (await import('../../store/index.ts'))
    return runProxy(
      { ...config, metricsPort: undefined, warnings: [] },
      {
        ...parts,
        quiet: true,
        connections,
        ...(store && { proofs: store.makeRemoteStore((call) => channel.call('store.proofs', call)) }),
        ...(config.remote.kind === 'oauth' ? { tokens: login } : {}),
        ...(config.sessionStorage?.provider === 'redis' ? {} : { sessions: sessionsOf(channel) }),
        ...(metrics ? { observe: metrics.observe } : {}),
      },
    )
  })
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
  return isFields(value) && typeof value['upstreamId'] === 'string'
}
