/** What `/metrics` reads from the running server at each scrape: backends, sessions, certificates, the process. */
import { processSamples } from '../../../schemas/metrics/index.ts'
import type { Metrics } from '../../observe/index.ts'
import type { BackendState } from '../backends/backend-state.ts'

export interface GaugeParts {
  readonly version: string
  readonly sessions: () => number
  readonly backends: () => readonly BackendState[]
}

const HEALTH = ['healthy', 'degraded', 'unhealthy', 'unauthenticated', 'unknown'] as const
const CIRCUITS = ['closed', 'open', 'half-open'] as const

export function observeServer(metrics: Metrics, { version, sessions, backends }: GaugeParts): void {
  metrics.sessions(() => [[sessions()]])
  metrics.backendHealth(function* health() {
    for (const { name, health } of backends())
      for (const status of HEALTH) yield [Number(health.status === status), { ...named(name), status }]
  })
  metrics.backendCircuit(function* circuits() {
    for (const { name, health } of backends())
      if (health.circuit)
        for (const state of CIRCUITS)
          yield [Number(health.circuit.state === state), { ...named(name), state }]
  })
  metrics.certificateExpiry(function* ends() {
    for (const { name, caEndsAt } of backends())
      if (caEndsAt !== undefined) yield [caEndsAt / 1_000, { certificate: `caBundle of ${name}` }]
  })
  metrics.processCpu(() => processSamples(version).processCpu)
  metrics.processMemory(() => processSamples(version).processMemory)
  metrics.processStart(() => processSamples(version).processStart)
  metrics.processFiles(() => processSamples(version).processFiles)
  metrics.buildInfo(() => [[1, { version, node: process.versions.node }]])
}

function named(backend: string): { 'target.workload_name': string } {
  return { 'target.workload_name': backend }
}
