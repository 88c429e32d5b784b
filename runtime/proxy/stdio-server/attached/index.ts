/**
 * The bridge to a stdio server in its own container, reached through the Kubernetes API. All sessions share this one
 * process. A small listener serves readiness and metrics.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { ContainerName, ClusterApi } from '../../../kube/index.ts'
import {
  Exchange,
  listen,
  type Listener,
  type Log,
  pipeline,
  sendBody,
  sendJson,
} from '../../../net/index.ts'
import { type Events, makeEvents } from '../../../observe/index.ts'
import { metricsType } from '../../../../schemas/metrics/index.ts'
import { type BridgeOptions, startBridge, type StdioBridge } from '../bridge.ts'
import { Connection } from './connection.ts'
import { makeAttachMetrics } from './metrics.ts'
import { AttachRecord } from './record.ts'
import { SharedServer } from './shared-server.ts'

export interface AttachedBridgeOptions extends BridgeOptions {
  /** The server's name, as used in metrics. */
  readonly name: string
  /** Receives events about the server. By default, only the metrics receive these events. */
  readonly events?: Events | undefined
  readonly api: ClusterApi
  readonly target: ContainerName
  /** ConfigMap in the target's namespace to which this proxy writes its record. */
  readonly report: string
  /** This proxy's pod name. */
  readonly pod: string
  /** Address for `/health`, `/readyz` and `/metrics`; undefined disables them. */
  readonly health?: { readonly host: string; readonly port: number } | undefined
  readonly onLine: (line: string) => void
  readonly waitMs?: number | undefined
  /** Interval at which the pod and the record are checked while attached. Default 30 s. */
  readonly lookMs?: number | undefined
  readonly retryMs?: number | undefined
}

export interface AttachedBridge extends StdioBridge {
  /** Port of `/readyz`. */
  readonly healthPort: number | undefined
  /** Resolves when the server has no pending requests, or after `graceMs`. */
  drained(graceMs: number): Promise<void>
}

/** Maximum number of sessions. Sessions do not need their own process here. */
const maxSessions = 1_000

/** Starts serving, even before the server is available. Rejects with the system's error when a port cannot be bound. */
export async function startAttachedBridge(options: AttachedBridgeOptions): Promise<AttachedBridge> {
  const { api, target, report, pod, log, version = '0.0.0', health, lookMs = 30_000 } = options
  const { events = makeEvents() } = options
  const record = new AttachRecord({
    api,
    namespace: target.namespace,
    configMap: report,
    holder: pod,
    lookMs,
    log,
  })
  const server = new SharedServer({
    log,
    info: JSON.stringify({ name: 'gatehouse', version }),
    waitMs: options.waitMs,
    onLost(count, why) {
      record.lost(count)
      events.emit('server_requests_lost', { count, why })
    },
  })
  const connection = new Connection({ ...options, events, lookMs, record, server })
  const metrics = makeAttachMetrics({
    server: options.name,
    version,
    events,
    now: () => ({
      up: connection.notReady === undefined,
      withServer: server.inFlight,
      waiting: server.waiting,
    }),
  })
  const source = {
    take: (onMessage: Parameters<SharedServer['take']>[0]) => server.take(onMessage),
    failed: connection.failed,
    start: () => connection.start(),
    async close() {
      server.close()
      await connection.close()
    },
    closeAll: () => api.fetch.close(),
  }
  const listener = health && (await serveHealth(health, { connection, metrics, log }))
  try {
    const bridge = await startBridge(source, { maxSessions, ...options })
    return {
      ...bridge,
      healthPort: listener?.port,
      drained: (graceMs) => drained(server, graceMs),
      async close() {
        await bridge.close()
        await listener?.close({ graceMs: 0 })
      },
    }
  } catch (error) {
    await listener?.close({ graceMs: 0 })
    throw error
  }
}

const drainLookMs = 50

async function drained(server: SharedServer, graceMs: number): Promise<void> {
  const end = performance.now() + graceMs
  while (server.inFlight > 0 && performance.now() < end) await sleep(drainLookMs)
}

function serveHealth(
  { host, port }: { readonly host: string; readonly port: number },
  {
    connection,
    metrics,
    log,
  }: { readonly connection: Connection; readonly metrics: () => string; readonly log: Log },
): Promise<Listener> {
  const handler = pipeline<Exchange>(
    { dispatch: answer, recover: ({ res }) => sendJson(res, 500, { status: 'error' }) },
    Exchange,
  )
  function answer({ req, path, res }: Exchange): void {
    if (path === '/metrics' && (req.method === 'GET' || req.method === 'HEAD'))
      return sendBody(res, 200, metricsType, metrics())
    if (path !== '/health' && path !== '/readyz') return sendJson(res, 404, { status: 'not_found' })
    const reason = path === '/readyz' ? connection.notReady : undefined
    if (reason === undefined) sendJson(res, 200, { status: 'ready' })
    else sendJson(res, 503, { status: 'not_ready', reason })
  }
  return listen({ host, port, handler, log })
}
