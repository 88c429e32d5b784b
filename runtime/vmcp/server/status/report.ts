/**
 * Reports the state of the backends to the cluster by writing this pod's entry in the report ConfigMap. The hooks build
 * the resource's status from this ConfigMap. A report is written every statusReportingInterval, and shortly after a
 * change.
 *
 * This module also removes the entries of killed pods, because no other component removes them. Another pod's entry
 * that has not changed for a long time is assumed to belong to a killed pod. If the API server cannot be reached, logs
 * the error and retries.
 * Source: docs/reference/specification/virtual-server.md#status (status.discoveredBackends, statusReportingInterval);
 * ARCHITECTURE.md, "A manifest".
 */
import { createHash } from 'node:crypto'
import { excludedPrefix, fieldsOf } from '../../../../schemas/index.ts'
import { vmcpEnvironment } from '../../../config/index.ts'
import { type ClusterApi, clusterApi, corePath, mergeInto } from '../../../kube/index.ts'
import type { Log } from '../../../net/index.ts'
import { type Cause, causeText, type Events, type OpenProblem, visibleText } from '../../../observe/index.ts'
import type { Clock } from '../../model/time/clock.ts'
import type { BackendState } from '../engine/backend-state.ts'
import type { PinReport } from '../../catalog/pinning/report.ts'
import type { ListsState } from '../../catalog/lists/list-read-reports.ts'
import type { BackendHealth } from '../../backends/health/monitor.ts'

type Environment = Readonly<Record<string, string | undefined>>

export interface ReporterOptions {
  readonly api: ClusterApi
  readonly namespace: string
  readonly configMap: string
  readonly pod: string
  readonly intervalMs: () => number
  /**
   * Returns the SHA-256 digest of the active configuration, in hex. Returns undefined if the configuration did not come
   * from a file.
   */
  readonly configChecksum: () => string | undefined
  readonly backends: () => readonly BackendState[]
  readonly clock: Clock
  readonly log: Log
  readonly events: Events
}

/** Delay in milliseconds before a change is reported. Changes within the delay are combined. */
const soonMs = 1_000
/**
 * A pod is treated as dead if its entry does not change during this many reports and report intervals, and for at least
 * `leastAgeMs`. This pod uses its own report count and its own clock. The hooks count every existing entry, so an entry
 * must not remain for much longer.
 */
const missedReports = 4
const leastAgeMs = 60_000
/** Maximum number of problems in an entry. The entries of all pods share the 1 MiB of a ConfigMap. */
const maxProblems = 50
const maxDrift = 50

/** Returns the reporter for a pod's environment. Returns undefined outside a cluster. */
export function reporterFor(
  env: Environment,
  given: ClusterApi | undefined,
  parts: Omit<ReporterOptions, 'api' | 'namespace' | 'configMap' | 'pod'>,
): Reporter | undefined {
  const namespace = env[vmcpEnvironment.namespace]
  const configMap = env[vmcpEnvironment.reportConfigMap]
  const pod = env[vmcpEnvironment.podName]
  if (!namespace || !configMap || !pod) return undefined
  const api = given ?? clusterApi(env)
  return api && new Reporter({ ...parts, api, namespace, configMap, pod })
}

export class Reporter {
  readonly #options: ReporterOptions
  #cancel: (() => void) | undefined
  #soon = false
  #sending: Promise<void> | undefined
  #closed = false
  readonly #stopListening: () => void
  /** The digest of each other pod's entry and the time of its last change, keyed by ConfigMap key. */
  #otherEntries: ReadonlyMap<string, ObservedEntry> = new Map()

  constructor(options: ReporterOptions) {
    this.#options = options
    this.#schedule(soonMs)
    this.#stopListening = options.events.listen(({ type, change }) => {
      if (change !== undefined && change !== 'same' && type !== 'status_report') this.notify()
    })
  }

  /** Schedules a report soon, because a value has changed. */
  notify(): void {
    if (this.#soon || this.#closed) return
    this.#soon = true
    this.#schedule(soonMs)
  }

  #schedule(ms: number): void {
    this.#cancel?.()
    this.#cancel = this.#options.clock.after(ms, () => {
      this.#soon = false
      this.#sending = this.#report().finally(() => {
        if (!this.#closed && !this.#soon) this.#schedule(this.#options.intervalMs())
      })
    })
  }

  async #report(): Promise<void> {
    const { clock, events, configMap } = this.#options
    try {
      await this.#write(JSON.stringify({ observedAt: time(clock.now()), ...this.#content() }))
      events.emit('status_report', { ok: true, config_map: configMap })
    } catch (error) {
      events.emit('status_report', { ok: false, config_map: configMap, err: error })
    }
  }

  #content(): Record<string, unknown> {
    const { pod, configChecksum, backends, events } = this.#options
    const states = backends()
    const pinned = states.flatMap(({ pins }) => pins ?? [])
    return {
      configChecksum: configChecksum(),
      replica: pod,
      backends: states.map(entryOf),
      ...(pinned.length > 0 ? { pinning: pinned.map(pinEntry) } : {}),
      problems: events.problems().slice(0, maxProblems).map(problemOf),
    }
  }

  /** Sets this pod's key, or removes it if `value` is null. Removes the keys of dead pods. */
  async #write(value: string | null): Promise<void> {
    const { api, namespace, configMap, pod } = this.#options
    const dead = this.#deadKeys().map((key) => [key, null] as const)
    const { status, body } = await mergeInto(api, corePath(namespace, 'configmaps', configMap), {
      data: { ...Object.fromEntries(dead), [`${pod}.json`]: value },
    })
    if (status !== 200) throw new Error(`the API server returned ${status}`)
    this.#recordOthers(body)
  }

  #deadKeys(): readonly string[] {
    const { clock, intervalMs } = this.#options
    const age = Math.max(missedReports * intervalMs(), leastAgeMs)
    return [...this.#otherEntries].flatMap(([key, { since, reports }]) =>
      reports >= missedReports && clock.now() - since > age ? [key] : [],
    )
  }

  /** Records whether the entries of other pods have changed. Does not use the clocks of other pods. */
  #recordOthers(configMap: unknown): void {
    const { clock, pod } = this.#options
    const others = Object.entries(stringsOf(configMap)).filter(([key]) => key !== `${pod}.json`)
    this.#otherEntries = new Map(
      others.map(([key, text]) => {
        const digest = createHash('sha256').update(text).digest('base64')
        const known = this.#otherEntries.get(key)
        const isSame = known?.digest === digest
        return [
          key,
          isSame ? { ...known, reports: known.reports + 1 } : { digest, since: clock.now(), reports: 0 },
        ]
      }),
    )
  }

  /** Stops reporting and removes this pod's entry. */
  async close(): Promise<void> {
    this.#closed = true
    this.#stopListening()
    this.#cancel?.()
    await this.#sending
    try {
      await this.#write(null)
    } catch (error) {
      this.#options.log.debug('failed to remove the report', { err: error })
    }
    await this.#options.api.fetch.close()
  }
}

interface ObservedEntry {
  readonly digest: string
  /** Milliseconds on this pod's clock. */
  readonly since: number
  /**
   * Number of successful reports from this pod since the change. While this pod's reports fail, other pods probably
   * cannot report either.
   */
  readonly reports: number
}

/** Returns the strings in a ConfigMap's `data`. */
function stringsOf(configMap: unknown): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(fieldsOf(fieldsOf(configMap)['data'])).filter(
      (entry): entry is [string, string] => typeof entry[1] === 'string',
    ),
  )
}

function entryOf({ name, url, health, lists, revision, excluded }: BackendState): Record<string, unknown> {
  if (excluded) {
    const message = excludedPrefix + excluded.join('; ')
    return { name, status: 'unavailable', message, excluded: true }
  }
  const { circuit } = health
  return {
    name,
    url,
    status: statusOf(health),
    message: [messageOf(health), ...listNotes(lists)].join('; '),
    lastHealthCheck: time(health.lastCheckAt),
    consecutiveFailures: health.consecutiveFailures,
    circuitBreakerState: circuit?.state,
    circuitLastChanged: circuit && circuit.changedAt > 0 ? time(circuit.changedAt) : undefined,
    mcpRevision: revision,
  }
}

/** Shortens item names and makes their characters visible, because backends choose the names. */
function pinEntry({
  backend,
  lock,
  locks,
  failure,
  counts,
  observed,
  drift,
}: PinReport): Record<string, unknown> {
  const named = drift.slice(0, maxDrift).map(({ kind, name, state, parts, digest }) => ({
    kind,
    name: visibleText(name).slice(0, 256),
    state,
    parts,
    digest,
  }))
  return { backend, lock, locks, failure: failure?.slice(0, 1_024), observed, counts, drift: named }
}

function problemOf({ type, backend, since, message, fix }: OpenProblem): Record<string, unknown> {
  return { type, backend, since: time(since), message: message.slice(0, 1_024), fix: fix.slice(0, 1_024) }
}

function statusOf({ status, circuit }: BackendHealth): string {
  if (circuit?.state === 'open') return 'unavailable'
  if (status === 'healthy') return 'ready'
  return status === 'unhealthy' ? 'unavailable' : status
}

/**
 * Returns the cause of the current failure. The last error can be older than the failure and have a different category.
 */
function causeOf({ lastErrorCategory: category, lastError }: BackendHealth): Cause | undefined {
  if (category === undefined) return undefined
  return lastError?.category === category ? lastError : { category }
}

function messageOf(health: BackendHealth): string {
  const { status, consecutiveFailures, circuit } = health
  const cause = causeOf(health)
  const failure = cause && causeText(cause)
  const text =
    failure === undefined
      ? status === 'healthy'
        ? 'Healthy'
        : status === 'degraded'
          ? 'Degraded performance'
          : 'Not checked yet'
      : `${failure} (failures: ${consecutiveFailures})`
  if (circuit?.state === 'open') return `Circuit breaker OPEN - ${text}`
  return circuit?.state === 'half-open' ? `Circuit breaker testing recovery - ${text}` : text
}

function listNotes({ staleSince, repaired, leftOut }: ListsState): string[] {
  return [
    ...(staleSince === undefined
      ? []
      : [`lists unreadable since ${time(staleSince) ?? ''}; the previous lists stay in use`]),
    ...(leftOut > 0 ? [`malformed items left out: ${leftOut}`] : []),
    ...(repaired > 0 ? [`malformed items repaired: ${repaired}`] : []),
  ]
}

/** Formats a time as RFC 3339 without fractional seconds, like times in the API server. */
function time(ms: number | undefined): string | undefined {
  return ms === undefined ? undefined : `${new Date(ms).toISOString().slice(0, 19)}Z`
}
