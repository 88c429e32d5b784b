/**
 * Keeps one workload running: starts it once its port is free, waits until it is ready, restarts it with backoff when
 * it exits, and stops it.
 *
 * The session turns the states that `onChange` reports into the workload's status. A failed process keeps the state
 * `failed` until it is ready again, so that repeated crashes are reported as one state.
 */
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { silentLog } from '../../../net/index.ts'
import { type Cause, causeText, decisiveLine, tellingLines, withDetail } from '../../../observe/index.ts'
import { commandNotFound, exitCodeIn, type StdioBridge, startStdioBridge } from '../../../proxy/index.ts'
import { version } from '../../terminal/self.ts'
import type { ProcessPlan } from '../plan.ts'
import { startedCommand } from './npx.ts'
import { brokenCacheCause, type PackageFetcher } from './packages.ts'
import { isFree } from './ports.ts'
import { acceptsConnections, probeReadiness } from './probe.ts'
import { type LocalProcess, startProcess } from './process.ts'
import { canRunInThread, startThread } from './thread.ts'

export interface RunnerState {
  readonly phase: 'starting' | 'ready' | 'failed'
  /** The failure reason, or the readiness condition that was not met by the start deadline. */
  readonly why?: string
  /** Reason why the server does not respond. Undefined while the server is ready, and during an ordinary start. */
  readonly cause?: Cause
  /** The last lines of the process's output. */
  readonly lines?: readonly string[]
  /** Number of restarts after unexpected exits. */
  readonly restarts: number
  /** Reason for the last exit, with the last line of output. */
  readonly lastEnd?: string
}

export interface RunnerParts {
  /** Shared by the processes of a session. */
  readonly packages: PackageFetcher
  readonly onChange: () => void
  readonly onLine: (line: string) => void
}

/** Number of output lines kept for the message when a process fails. */
const maxLines = 20
const graceMs = 3000
const probeEveryMs = 100
/** How long a port can stay in use after its process has exited. */
const releaseMs = 3000
/** After a process has been ready for this long, backoff starts over. */
const stableMs = 10_000
const backoffMs = [500, 1000, 2000, 4000, 8000, 15000] as const

export class ProcessRunner {
  readonly plan: ProcessPlan
  state: RunnerState = { phase: 'starting', restarts: 0 }
  readonly #parts: RunnerParts
  readonly #startMs: number
  readonly #stopping = new AbortController()
  readonly #loop: Promise<void>
  #process: LocalProcess | undefined
  #bridge: StdioBridge | undefined
  #lines: string[] = []
  #readySince: number | undefined

  /** Reports a process that is not ready after `startMs`. */
  constructor(plan: ProcessPlan, startMs: number, parts: RunnerParts) {
    this.plan = plan
    this.#startMs = startMs
    this.#parts = parts
    this.#loop = this.#run()
  }

  /** Stops the process and its descendants. Resolves when the process and its descendants have exited. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    await Promise.all([this.#process?.stop(graceMs), this.#bridge?.close()])
    await this.#loop
  }

  async #run(): Promise<void> {
    for (let attempt = 0; !this.#isStopping; attempt++) {
      this.#lines = []
      this.#readySince = undefined
      const cause = (await this.#awaitPort()) ?? (await this.#fetchPackage()) ?? (await this.#runOnce())
      if (this.#isStopping) return
      if (this.#readySince !== undefined && performance.now() - this.#readySince > stableMs) attempt = 0
      const why = causeText(cause)
      // The cause already contains the decisive line.
      const lines = tellingLines(this.#lines).filter((line) => line.trim() !== cause.detail)
      this.#set({ phase: 'failed', why, cause, lines, lastEnd: why })
      await this.#pause(backoffMs[Math.min(attempt, backoffMs.length - 1)] ?? 0)
      this.state = { ...this.state, restarts: this.state.restarts + 1 }
    }
  }

  /** Returns undefined once the port is free, or the cause if another program keeps using it. */
  async #awaitPort(): Promise<Cause | undefined> {
    const { port, isEntrance } = this.plan
    const until = performance.now() + releaseMs
    while (!(await isFree(port))) {
      if (this.#isStopping) return undefined
      if (performance.now() > until) {
        const other = isEntrance ? ', or choose another port with --port' : ''
        return {
          category: 'port_in_use',
          detail: `port ${port} is in use by another program`,
          fix: `stop that program${other}`,
        }
      }
      await this.#pause(probeEveryMs)
    }
    return undefined
  }

  /** Returns undefined once the command's package is installed, or the cause of the failure. */
  async #fetchPackage(): Promise<Cause | undefined> {
    if (this.#isStopping) return undefined
    const spec = { env: this.plan.env, ...this.#command() }
    const label = this.#parts.packages.missing(spec)
    if (label === undefined) return undefined
    const cause = { category: 'package_installing', detail: label }
    // Keeps the state `failed` during the next attempt to install the package.
    if (this.state.phase !== 'failed') this.#set({ phase: 'starting', cause })
    // npm may retry for minutes. Other servers may need the package, so `stop` only stops waiting for it.
    return Promise.race([this.#parts.packages.fetch(spec), this.#stopped.then(() => undefined)])
  }

  async #runOnce(): Promise<Cause> {
    if (this.#isStopping) return { category: 'program_exited' }
    try {
      const why = await (this.plan.stdio ? this.#runBridge() : this.#runProcess())
      return exitCause(why, this.plan.argv, this.#lines)
    } catch (error) {
      return { category: 'program_not_started', detail: whyNotStarted(error) }
    }
  }

  async #runProcess(): Promise<string> {
    const started = this.#start((line) => this.#handleLine(line))
    this.#process = started
    const gone = new AbortController()
    void this.#awaitReady(gone.signal)
    const why = await started.exited
    gone.abort()
    return why
  }

  #start(onLine: (line: string) => void): LocalProcess {
    const { env, ownWords } = this.plan
    const spec = { env, ...this.#command() }
    return canRunInThread(spec, ownWords) ? startThread(spec, ownWords, onLine) : startProcess(spec, onLine)
  }

  /** Runs a stdio server. The bridge starts one process per session, and restarts a process that exits. */
  async #runBridge(): Promise<string> {
    const { env, port, bridgeMode: mode, access } = this.plan
    const { argv, cwd } = this.#command()
    this.#bridge = await startStdioBridge({
      command: argv,
      mode,
      env,
      cwd,
      host: '127.0.0.1',
      port,
      localTokens: access && { digests: access.digests },
      log: silentLog,
      version,
      onLine: (line) => this.#handleLine(line),
      onEnded: (why, output) => this.#reportExit(why, output),
      ahead: false,
      showOutput: true,
    })
    // `stop` was called during startup.
    if (this.#isStopping) await this.#bridge.close()
    const gone = new AbortController()
    void this.#awaitMessage(this.#bridge, gone.signal)
    const why = await this.#bridge.failed
    gone.abort()
    await this.#bridge.close()
    return why
  }

  /**
   * Marks a stdio server as ready once its address is open. A server that has failed stays failed until it responds.
   */
  async #awaitMessage(bridge: StdioBridge, gone: AbortSignal): Promise<void> {
    while (this.state.phase === 'failed' && !bridge.hasSpoken) {
      await this.#pause(probeEveryMs)
      if (gone.aborted || this.#isStopping) return
    }
    this.#markReady()
  }

  /** Resolved at each start, because npx may have installed the package since. */
  #command(): { readonly argv: readonly string[]; readonly cwd: string } {
    const cwd = process.cwd()
    return { argv: startedCommand(this.plan.argv, cwd, this.plan.env), cwd }
  }

  /** Records the exit of one session's process. The next session starts a new process. */
  #reportExit(why: string, output: readonly string[]): void {
    if (this.#isStopping) return
    const lastEnd = withDetail(why, decisiveLine(output))
    this.#set({ ...this.state, restarts: this.state.restarts + 1, lastEnd })
  }

  /** Error that a stdio server returned instead of opening a session. */
  get refusal(): string | undefined {
    return this.state.phase === 'ready' ? this.#bridge?.refusal : undefined
  }

  /**
   * Set until a stdio server responds to its first request: its start time in milliseconds since the epoch, and its
   * last lines of output.
   */
  get starting(): { readonly since: number; readonly lines: readonly string[] } | undefined {
    const since = this.state.phase === 'ready' ? this.#bridge?.startingSince : undefined
    return since === undefined ? undefined : { since, lines: tellingLines(this.#lines) }
  }

  async #awaitReady(gone: AbortSignal): Promise<void> {
    const { port, readyPath, access } = this.plan
    const deadline = performance.now() + this.#startMs
    while (!gone.aborted && !this.#isStopping) {
      const unmet = readyPath
        ? await probeReadiness(`http://127.0.0.1:${port}${readyPath}`, access?.token)
        : (await acceptsConnections(port))
          ? undefined
          : `no program is listening on 127.0.0.1:${port}; the command must listen on the port in {port} or PORT`
      if (gone.aborted) return
      if (unmet === undefined) return this.#markReady()
      if (performance.now() > deadline && this.state.phase === 'starting') this.#reportLate(unmet)
      await this.#pause(probeEveryMs)
    }
  }

  #reportLate(unmet: string): void {
    const why = `not ready after ${Math.round(this.#startMs / 1000)} s: ${unmet}`
    const cause = { category: 'program_starting', detail: why }
    if (this.state.why !== why) this.#set({ phase: 'starting', why, cause, lines: tellingLines(this.#lines) })
  }

  #markReady(): void {
    this.#readySince = performance.now()
    this.#set({ phase: 'ready' })
  }

  get #isStopping(): boolean {
    return this.#stopping.signal.aborted
  }

  get #stopped(): Promise<unknown> {
    const { signal } = this.#stopping
    return signal.aborted ? Promise.resolve() : once(signal, 'abort')
  }

  async #pause(ms: number): Promise<void> {
    await sleep(ms, undefined, { signal: this.#stopping.signal }).catch(() => undefined)
  }

  #handleLine(line: string): void {
    this.#lines = [...this.#lines.slice(-maxLines + 1), line]
    this.#parts.onLine(line)
  }

  #set(state: Partial<RunnerState> & Pick<RunnerState, 'phase'>): void {
    const { restarts, lastEnd } = this.state
    this.state = { restarts, ...(lastEnd !== undefined && { lastEnd }), ...state }
    if (!this.#isStopping) this.#parts.onChange()
  }
}

/** Returns the reason why a process ended. */
function exitCause(why: string, [program]: readonly string[], output: readonly string[]): Cause {
  if (why === commandNotFound) return { category: 'program_not_found', detail: program }
  const exitCode = exitCodeIn(why)
  const line = decisiveLine(output)
  if (exitCode !== undefined)
    return brokenCacheCause(output) ?? { category: 'program_exited', exitCode, detail: line }
  return { category: 'program_exited', detail: withDetail(why, line) }
}

/**
 * Returns the reason why a process could not be started. Node's own message about a NUL character contains the value,
 * which may be a secret.
 */
function whyNotStarted(error: unknown): string {
  if (!(error instanceof Error)) return 'it could not be started'
  const isNul = 'code' in error && error.code === 'ERR_INVALID_ARG_VALUE'
  return isNul ? 'an argument or a variable contains a NUL character' : error.message
}
