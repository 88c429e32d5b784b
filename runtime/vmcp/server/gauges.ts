/**
 * Gauges for the running server. Each scrape of `/metrics` reads the state of backends, sessions, certificates and the
 * process.
 */
import { processSamples } from '../../../schemas/metrics/index.ts'
import type { AuthenticationEvent } from '../../incoming/index.ts'
import { LoadControl, type LoadLimits, trackOverload } from '../../net/index.ts'
import type { Clock } from '../model/time/clock.ts'
import type { Events, Metrics } from '../../observe/index.ts'
import { backendLabel, lostLogLines } from '../../observe/index.ts'
import type { BackendState } from './engine/backend-state.ts'
import { countsOf } from '../features/apps/page-drift.ts'
import type { QuotaUsage } from '../features/quotas/guard.ts'
import type { ServerSession } from '../clients/sessions/session.ts'

export interface GaugeParts {
  readonly version: string
  readonly sessions: () => number
  readonly load: Pick<LoadControl, 'waiting' | 'rejected'>
  readonly backends: () => readonly BackendState[]
  readonly server: string
  readonly quotas: () => readonly QuotaUsage[]
  /**
   * Returns the time at which the served certificate expires, in milliseconds since the epoch. Returns undefined
   * without TLS.
   */
  readonly servingEndsAt: () => number | undefined
}

const healthStates = ['healthy', 'degraded', 'unhealthy', 'unauthenticated', 'unknown'] as const
const pinStates = ['pinned', 'new', 'changed', 'removed'] as const
const circuitStates = ['closed', 'open', 'half-open'] as const

export function observeServer(metrics: Metrics, parts: GaugeParts): void {
  const { version, sessions, load, backends, server, quotas, servingEndsAt } = parts
  metrics.sessions(() => [[sessions()]])
  metrics.requestsWaiting(() => [[load.waiting]])
  metrics.overloadRefusals(() => [[load.rejected]])
  metrics.backendHealth(function* health() {
    for (const { name, health } of backends())
      for (const status of healthStates)
        yield [Number(health.status === status), { ...backendLabel(name), status }]
  })
  metrics.backendCircuit(function* circuits() {
    for (const { name, health } of backends())
      if (health.circuit)
        for (const state of circuitStates)
          yield [Number(health.circuit.state === state), { ...backendLabel(name), state }]
  })
  metrics.pinnedItems(function* pinned() {
    for (const { name, pins } of backends())
      if (pins?.lock === 'ok' && pins.observed)
        for (const state of pinStates) yield [pins.counts[state], { ...backendLabel(name), state }]
  })
  metrics.driftedPages(function* drifted() {
    for (const { name, pages } of backends())
      for (const [state, count] of Object.entries(pages ? countsOf(pages) : {}))
        yield [count, { ...backendLabel(name), state }]
  })
  metrics.certificateExpiry(function* ends() {
    const served = servingEndsAt()
    if (served !== undefined) yield [served / 1_000, { certificate: 'serving' }]
    for (const { name, caEndsAt } of backends())
      if (caEndsAt !== undefined) yield [caEndsAt / 1_000, { certificate: `caBundle of ${name}` }]
  })
  metrics.quotaUsage(function* used() {
    for (const { quota, share } of quotas()) yield [share, { server, quota: quota.name, per: quota.per }]
  })
  metrics.processCpu(() => processSamples(version).processCpu)
  metrics.processMemory(() => processSamples(version).processMemory)
  metrics.processStart(() => processSamples(version).processStart)
  metrics.processFiles(() => processSamples(version).processFiles)
  metrics.logLinesLost(() => [[lostLogLines()]])
  metrics.buildInfo(() => [[1, { version, node: process.versions.node }]])
}

/** Records the duration of a session that has left this process. */
export function countSession(metrics: Metrics, { openedAt, facts }: ServerSession, now: number): void {
  metrics.serverSessionDuration((now - openedAt) / 1_000, {
    'mcp.protocol.version': facts.protocolVersion,
    'network.transport': 'tcp',
    'network.protocol.name': 'http',
  })
}

/** Reports the results of access token checks. */
export function reportAuthentication(events: Events, event: AuthenticationEvent): void {
  if (event.kind === 'refused') events.emit('token_refused', { reason: event.reason })
  else if (event.kind === 'available') events.emit('token_check_recovered', {})
  else events.emit('token_check_failed', { reason: event.reason, err: event.error })
}

/** Creates a server's overload protection. The protection emits events when an overload begins and ends. */
export function makeLoadControl(events: Events, clock: Clock, limits?: Partial<LoadLimits>): LoadControl {
  const onRejected = trackOverload(
    ({ isOn, rejected }) => events.emit('server_overloaded', { refusing: isOn, refused: rejected }),
    clock.after,
  )
  return new LoadControl({ limits, onRejected })
}
