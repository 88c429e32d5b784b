/**
 * Audit and telemetry for a virtual server. Observes the pipeline, the operations and the calls to backends, as
 * configured. Settings are read at startup. A changed setting takes effect after a restart.
 * Source: docs/reference/specification/virtual-server.md#audit, config.audit, config.telemetry, "Endpoints" (/metrics).
 */
import { consoleStartSettings, isSwitchedOn } from '../../../schemas/index.ts'
import { type VmcpConfig, vmcpEnvironment } from '../../config/index.ts'
import type { Exchange, Log, Stage } from '../../net/index.ts'
import {
  type AuditTrail,
  countEvents,
  type Events,
  type ExchangeRecorder,
  isToolError,
  makeAudit,
  makeObserver,
  makeTelemetry,
  type Observer,
  readError,
  RecordMask,
  respondToScrape,
  reportLoss,
  type RpcResponse,
  type Instruments,
} from '../../observe/index.ts'
import type { PrimaryLink } from '../../process/index.ts'
import type { Clock } from '../model/time/clock.ts'
import type { BackendObservation } from '../backends/transport/measure.ts'
import { mcpPath, messagesPath, ssePath } from '../model/exchange.ts'
import type { Link } from '../model/operation.ts'
import type { Outcome } from '../model/outcome.ts'

const metricsPath = '/metrics'
const mcpPaths: ReadonlySet<string> = new Set([mcpPath, ssePath, messagesPath])

export interface ObservationOptions {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly version: string
  readonly log: Log
  readonly events: Events
  readonly clock: Clock
  /** Receives a record of every request, in addition to the audit log. */
  readonly recorder?: ExchangeRecorder | undefined
  /** The primary process. Set if this process is one of several workers that serve their metrics together. */
  readonly worker?: PrimaryLink | undefined
}

export interface Observation {
  readonly audit: AuditTrail
  readonly telemetry: Instruments
  readonly observer: Observer
  /** Masks values in the audit log, spans and recorded requests. */
  readonly mask: RecordMask
  /** Observes calls to backends. Undefined if the configuration does not require observation. */
  readonly backends: BackendObservation | undefined
  /** The first link of the chain. Undefined if the configuration does not require observation. */
  readonly observe: Link | undefined
  /** Returns the stage for `/metrics`, if metrics are served. */
  route(path: string): Stage<Exchange> | undefined
  /** Reports changed settings that require a restart. */
  reportRestartNeeded(config: VmcpConfig): void
  close(): Promise<void>
}

/**
 * Makes the observation. Rejects with INVALID_CONFIG if a setting cannot be used or the audit file cannot be opened.
 */
export async function makeObservation(
  config: VmcpConfig,
  { env, version, log, events, clock, recorder, worker }: ObservationOptions,
): Promise<Observation> {
  const telemetry = await makeTelemetry(config.telemetry, {
    serverName: config.name,
    version,
    env,
    log,
    toolArguments: isSwitchedOn(env, vmcpEnvironment.telemetryToolArguments),
  })
  countEvents(events, telemetry.metrics, config.name)
  const mask = new RecordMask()
  const audit = makeAudit(config.audit, { watch: reportLoss(events, clock.after), mask })
  const observer = makeObserver({
    server: config.name,
    audit,
    telemetry,
    recorder,
    mask,
    log,
    observes: (path) => mcpPaths.has(path),
    transport: (path) => (path === mcpPath ? 'streamable-http' : 'sse'),
  })
  worker?.offer({ 'metrics.text': async () => ({ id: worker.id, text: await telemetry.prometheus?.() }) })
  const settings = startSettings(config)
  return {
    audit,
    telemetry,
    observer,
    mask,
    backends: observer.enabled
      ? { calls: telemetry.backendCalls, onBackendSelected: (name) => observer.backend(name) }
      : undefined,
    observe: observer.enabled ? observe(observer) : undefined,
    route: (path) => (path === metricsPath ? scrapeStage(telemetry, worker) : undefined),
    reportRestartNeeded(changed) {
      const now = startSettings(changed)
      const sections = (Object.keys(now) as (keyof typeof now)[]).filter(
        (name) => now[name] !== settings[name],
      )
      events.emit('restart_needed', { sections })
    },
    async close() {
      await telemetry.close()
      audit.close()
    },
  }
}

/** Returns undefined if metrics are not served. */
function scrapeStage(
  { prometheus }: Instruments,
  worker: PrimaryLink | undefined,
): Stage<Exchange> | undefined {
  if (!prometheus) return undefined
  const render = worker ? async () => String(await worker.channel.call('metrics')) : prometheus
  return (exchange) => respondToScrape(exchange, render)
}

/** Returns the settings that are only read at startup. */
function startSettings({ audit, telemetry, sessionStorage, console, operational }: VmcpConfig) {
  return {
    audit: JSON.stringify(audit),
    telemetry: JSON.stringify(telemetry),
    sessionStorage: JSON.stringify(sessionStorage),
    console: JSON.stringify(consoleStartSettings(console)),
    'operational.workers': String(operational.workers ?? 1),
  }
}

/** Returns the link that traces operations within their request's span and audits the outcome. */
function observe(observer: Observer): Link {
  return function observeOperations(operation, next) {
    const { id, method, params, client } = operation
    const facts = {
      message: { kind: 'request', id, method },
      params,
      clientInfo: client.info,
      protocolVersion: client.protocolVersion,
    } as const
    return observer.operation(
      facts,
      () => next(operation),
      (outcome) => responseOf(method, outcome),
    )
  }
}

function responseOf(method: string, outcome: Outcome): RpcResponse {
  if (outcome.kind === 'error') return readError(outcome.error.toString())
  return { kind: 'result', toolError: method === 'tools/call' && isToolError(outcome.result) }
}
