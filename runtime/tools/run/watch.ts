/**
 * Watches the servers that `gatehouse run` started. Reports the address, the servers that answer, and each change.
 *
 * Reports the address when every server has answered or failed, or a few seconds after the virtual server starts
 * listening. A client that connects earlier would miss tools.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { causeFix, tellingLines } from '../../observe/index.ts'
import { causeOfServer } from '../../toolkit/local/causes.ts'
import { clientAddressesOf, type ShownBackend } from '../../toolkit/local/screen/client-addresses.ts'
import type { DevSession, WorkloadView } from '../../toolkit/local/session.ts'
import { forTerminal, oneLine } from '../../toolkit/terminal/plain-text.ts'
import { roundSecondsSince, secondsSince } from '../../toolkit/local/screen/lines.ts'

export type End =
  | { readonly state: 'stopped' }
  /** No server answers, and no server is expected to answer later. */
  | { readonly state: 'failed'; readonly missing: readonly Missing[] }

/** A server that does not respond. */
export interface Missing {
  readonly name: string
  readonly why: string
  /** The next step, if it is known. */
  readonly fix: string | undefined
  /** The last lines of output from the server's program. */
  readonly lines: readonly string[]
  /** Exit code of the server's program. */
  readonly code: number | undefined
}

export interface RunWatchOptions {
  readonly names: readonly string[]
  /** Returns the last lines of a server's output. */
  readonly linesOf: (name: string) => readonly string[]
  /** Time after which the watch fails when no server answers. */
  readonly timeoutMs: number
  readonly signal: AbortSignal
  /** Called once, with the address. */
  readonly onAddress: (url: string) => Promise<void>
  /** Called with a sentence for each change in a server's state. */
  readonly onChange: (name: string, sentence: string) => void
  readonly onMissing: (missing: Missing) => void
  /**
   * Called with the number of servers that are down for each cause: after the address is reported, and whenever the
   * number changes.
   */
  readonly onSummary: (summary: string) => void
  /** Called the first time that all servers respond. */
  readonly onComplete: () => void
}

const stepMs = 200
const laterStepMs = 1000
const slowMs = 8000
/** Maximum delay before the address is reported while servers are still starting. */
const maxWaitMs = 3000
const serving: ReadonlySet<string> = new Set(['healthy', 'degraded'])
/** States in which a server is reachable but does not answer, so waiting does not help. */
const silentStates: ReadonlySet<string> = new Set(['unhealthy', 'unauthenticated'])

interface ServerHistory {
  /** Last reported sentence. */
  reported?: string
  answered: boolean
  /** Number of times that the server's process has restarted. */
  restarts: number
}

/** Runs until the signal is aborted, or until no server answers and no server is expected to answer later. */
export async function watchServers(session: DevSession, options: RunWatchOptions): Promise<End> {
  const watch = new Watch(session, options)
  while (!options.signal.aborted) {
    const end = await watch.step()
    if (end) return end
    const pauseMs = watch.isComplete ? laterStepMs : stepMs
    await sleep(pauseMs, undefined, { signal: options.signal }).catch(() => undefined)
  }
  return { state: 'stopped' }
}

class Watch {
  isComplete = false
  readonly #session: DevSession
  readonly #options: RunWatchOptions
  readonly #seen = new Map<string, ServerHistory>()
  readonly #since = performance.now()
  #openSince: number | undefined
  #isReported = false
  #summary: string | undefined
  #hasAnswered = false

  constructor(session: DevSession, options: RunWatchOptions) {
    this.#session = session
    this.#options = options
  }

  async step(): Promise<End | undefined> {
    const { names, timeoutMs, signal } = this.#options
    const [address] = await clientAddressesOf(this.#session, undefined)
    if (signal.aborted) return { state: 'stopped' }
    const backends = new Map(address?.backends.map((backend) => [backend.name, backend]))
    const healthOf = (name: string): string => backends.get(name)?.health ?? ''
    const absent = names.filter((name) => !serving.has(healthOf(name)))
    const isLost = (name: string): boolean => backends.get(name)?.signInUrl === undefined
    const lost = absent
      .filter(isLost)
      .flatMap((name) => lostOf(name, this.#session, backends.get(name)) ?? [])
    this.#hasAnswered ||= absent.length < names.length || !absent.every(isLost)
    const elapsed = performance.now() - this.#since
    if (!this.#hasAnswered && (lost.length === names.length || elapsed > timeoutMs)) {
      const silent = absent.filter((name) => !lost.some((server) => server.name === name))
      return { state: 'failed', missing: [...lost, ...silent.map((name) => this.#missingOf(name))] }
    }
    if (address && (this.#isOpen() || absent.length === 0)) {
      const isSettled = absent.every((name) => silentStates.has(healthOf(name)) || isIn(lost, name))
      if (isSettled || this.#isWaitOver()) await this.#reportAddress(address.url)
    }
    for (const name of names) {
      const isAbsent = absent.includes(name)
      this.#reportState(name, { isAbsent, lost, elapsed: this.#openMs(), backend: backends.get(name) })
    }
    this.#reportSummary(address?.summary)
    if (absent.length === 0 && !this.isComplete) {
      this.isComplete = true
      this.#options.onComplete()
    }
    return undefined
  }

  #reportSummary(summary: string | undefined): void {
    if (!this.#isReported || summary === this.#summary) return
    this.#summary = summary
    if (summary !== undefined) this.#options.onSummary(summary)
  }

  /** True when the virtual server is listening. */
  #isOpen(): boolean {
    const isOpen = this.#session.workloads.some(
      ({ parent, phase }) => parent.kind === 'VirtualMCPServer' && phase === 'ready',
    )
    if (isOpen) this.#openSince ??= performance.now()
    return isOpen
  }

  #isWaitOver(): boolean {
    return this.#openMs() > maxWaitMs
  }

  /** Returns how long the virtual server has been listening. */
  #openMs(): number {
    return this.#openSince === undefined ? 0 : performance.now() - this.#openSince
  }

  async #reportAddress(url: string): Promise<void> {
    if (this.#isReported) return
    this.#isReported = true
    await this.#options.onAddress(url)
  }

  #reportState(name: string, state: ReportedState): void {
    const seen = this.#seen.get(name) ?? { answered: false, restarts: 0 }
    this.#seen.set(name, seen)
    const missing = state.lost.find((server) => server.name === name) ?? this.#unreachable(name, seen, state)
    const view = this.#viewOf(name)
    this.#reportExit(name, seen, view)
    const seconds = view?.starting ? roundSecondsSince(view.starting.since) : 0
    const installing = causeOfServer(this.#viewsOf(name))?.category === 'package_installing'
    // The session already reports the installation.
    if (installing) return
    const signInUrl = state.backend?.signInUrl
    const sentence = sentenceOf(seen, missing, { ...state, signInUrl, seconds, refusal: view?.refusal })
    if (sentence === undefined || sentence === seen.reported) return
    // A server that responds before the address is printed does not need a separate line.
    const isNews =
      seen.reported !== undefined || state.isAbsent || this.#isReported || signInUrl !== undefined
    seen.reported = sentence
    seen.answered ||= !state.isAbsent
    if (missing) this.#options.onMissing(missing)
    else if (isNews) this.#options.onChange(name, sentence)
  }

  #viewsOf(name: string): readonly WorkloadView[] {
    return this.#session.workloads.filter(({ parent }) => parent.metadata.name === name)
  }

  /** Returns the server's process. */
  #viewOf(name: string): WorkloadView | undefined {
    return this.#viewsOf(name).find((view) => view.starting ?? view.refusal ?? view.lastEnd)
  }

  /** Returns the reason why a remote server does not respond, once the server has had time to start. */
  #unreachable(
    name: string,
    { answered }: ServerHistory,
    { isAbsent, elapsed, backend }: ReportedState,
  ): Missing | undefined {
    const { health = '', error, fix, signInUrl } = backend ?? {}
    const isRemote = this.#viewsOf(name).length === 0
    if (!isAbsent || !isRemote || error === undefined || signInUrl !== undefined) return undefined
    if (!silentStates.has(health) || elapsed <= slowMs) return undefined
    const why = answered ? `no longer responding: ${error}` : error
    return { name, why, fix, lines: [], code: undefined }
  }

  /** Reports that a process exited after it had been ready. The next session starts another process. */
  #reportExit(name: string, seen: ServerHistory, view: WorkloadView | undefined): void {
    const { restarts = 0, lastEnd, phase } = view ?? {}
    const isNew = seen.answered && restarts > seen.restarts && phase === 'ready' && lastEnd !== undefined
    seen.restarts = restarts
    if (isNew) this.#options.onChange(name, `${forTerminal(lastEnd)}; the next session starts it again`)
  }

  #missingOf(name: string): Missing {
    const { starting, refusal } = this.#viewOf(name) ?? {}
    const still = starting ? `: still starting after ${secondsSince(starting.since)} s` : ''
    const why = refusal === undefined ? `not responding${still}` : `rejects new sessions: ${refusal}`
    const cause = causeOfServer(this.#viewsOf(name))
    const fix = cause && causeFix(cause, name)
    return { name, why, fix, lines: tellingLines(this.#options.linesOf(name)), code: undefined }
  }
}

interface ReportedState {
  readonly isAbsent: boolean
  readonly lost: readonly Missing[]
  readonly elapsed: number
  /** Undefined until the virtual server reports this backend. */
  readonly backend: ShownBackend | undefined
}

interface ServerState extends Pick<ReportedState, 'isAbsent' | 'elapsed'> {
  /** The address where the user must sign in. */
  readonly signInUrl: string | undefined
  /** Seconds since the server's start, rounded; 0 if it is not starting. */
  readonly seconds: number
  readonly refusal: string | undefined
}

function sentenceOf(
  { answered, reported }: ServerHistory,
  missing: Missing | undefined,
  { isAbsent, elapsed, seconds, refusal, signInUrl }: ServerState,
): string | undefined {
  if (missing) return missing.why
  if (signInUrl !== undefined) return `requires a sign-in: open ${signInUrl}`
  if (!isAbsent) return 'responding'
  if (refusal !== undefined) return `rejects new sessions: ${oneLine(refusal)}`
  if (answered) return 'no longer responding'
  if (elapsed <= slowMs || (seconds === 0 && reported !== undefined)) return undefined
  return seconds > 0 ? `starting (${seconds} s); -v shows its output` : 'not responding yet'
}

function isIn(missing: readonly Missing[], name: string): boolean {
  return missing.some((server) => server.name === name)
}

/** Returns the reason why a server cannot respond: its program exited or cannot start, or it requires a login. */
function lostOf(name: string, session: DevSession, backend: ShownBackend | undefined): Missing | undefined {
  const views = session.workloads.filter(({ parent }) => parent.metadata.name === name)
  const failed = views.find(({ phase }) => phase === 'failed' || phase === 'not runnable')
  if (failed) return exitOf(name, failed)
  if (backend?.health !== 'unauthenticated') return undefined
  const why = backend.error ?? 'requires a login, or rejected the credentials'
  return { name, why, fix: backend.fix, lines: [], code: undefined }
}

function exitOf(name: string, { why = 'failed', cause, lines = [] }: WorkloadView): Missing {
  const fix = cause && causeFix(cause, name)
  return { name, why, fix, lines: tellingLines(lines), code: cause?.exitCode }
}
