/**
 * Keeps one workload running as its plan says: starts it once its port is free, waits until it is ready, restarts it with
 * backoff when it ends by itself, and stops it.
 *
 * States go one way through `onChange`; the session turns them into the workload's status. A failed process stays failed
 * until it is ready again, so that one that ends again and again is one state and not many.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { silentLog } from '../../../net/index.ts'
import { type StdioBridge, startStdioBridge } from '../../../proxy/index.ts'
import { version } from '../../terminal/version.ts'
import type { ProcessPlan } from '../plan.ts'
import { startedCommand } from './installed.ts'
import { isFree } from './ports.ts'
import { accepts, readiness } from './probe.ts'
import { type LocalProcess, startProcess } from './process.ts'
import { runsInThread, startThread } from './thread.ts'

export interface RunnerState {
  readonly phase: 'starting' | 'ready' | 'failed'
  /** Why it failed, or what it has waited for since its start deadline. */
  readonly why?: string
  /** The last lines of its output. */
  readonly lines?: readonly string[]
  /** How often it ended by itself and was started again. */
  readonly restarts: number
  /** How the process last ended, with its last line of output. */
  readonly lastEnd?: string
}

export interface RunnerCallbacks {
  readonly onChange: () => void
  readonly onLine: (line: string) => void
}

/** Lines of output stored for the message when a process fails. */
const maxLines = 20
const graceMs = 3000
const probeEveryMs = 100
/** How long a port may stay taken after the process that had it has ended. */
const releaseMs = 3000
/** A process that was ready for this long begins with the shortest backoff again. */
const stableMs = 10_000
const backoffMs = [500, 1000, 2000, 4000, 8000, 15000] as const

export class ProcessRunner {
  readonly plan: ProcessPlan
  state: RunnerState = { phase: 'starting', restarts: 0 }
  readonly #callbacks: RunnerCallbacks
  readonly #startMs: number
  readonly #stopping = new AbortController()
  readonly #loop: Promise<void>
  #process: LocalProcess | undefined
  #bridge: StdioBridge | undefined
  #lines: string[] = []
  #readySince: number | undefined

  /** `startMs`: time after which a process that is not ready is told. */
  constructor(plan: ProcessPlan, startMs: number, callbacks: RunnerCallbacks) {
    this.plan = plan
    this.#startMs = startMs
    this.#callbacks = callbacks
    this.#loop = this.#run()
  }

  /** Ends the process and everything it started. Resolves when it is gone. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    await Promise.all([this.#process?.stop(graceMs), this.#bridge?.close()])
    await this.#loop
  }

  async #run(): Promise<void> {
    for (let attempt = 0; !this.#isStopping; attempt++) {
      this.#lines = []
      this.#readySince = undefined
      const why = (await this.#awaitPort()) ?? (await this.#runOnce())
      if (this.#isStopping) return
      if (this.#readySince !== undefined && performance.now() - this.#readySince > stableMs) attempt = 0
      this.#set({ phase: 'failed', why, lines: this.#lines, lastEnd: why })
      await this.#pause(backoffMs[Math.min(attempt, backoffMs.length - 1)] ?? 0)
      this.state = { ...this.state, restarts: this.state.restarts + 1 }
    }
  }

  /** Undefined once the port is free; otherwise who has it is not us, and the sentence says so. */
  async #awaitPort(): Promise<string | undefined> {
    const { port, isEntrance } = this.plan
    const until = performance.now() + releaseMs
    while (!(await isFree(port))) {
      if (this.#isStopping) return undefined
      if (performance.now() > until) {
        const other = isEntrance ? ', or choose another with --port' : ''
        return `port ${port} is in use by another program; end that program${other}`
      }
      await this.#pause(probeEveryMs)
    }
    return undefined
  }

  async #runOnce(): Promise<string> {
    if (this.#isStopping) return ''
    try {
      return await (this.plan.stdio ? this.#runBridge() : this.#runProcess())
    } catch (error) {
      return whyNotStarted(error)
    }
  }

  async #runProcess(): Promise<string> {
    const started = this.#start((line) => this.#keep(line))
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
    return runsInThread(spec, ownWords) ? startThread(spec, ownWords, onLine) : startProcess(spec, onLine)
  }

  /** A server on stdin and stdout: the bridge starts it, for each session one, and again when it ends. */
  async #runBridge(): Promise<string> {
    const { env, port, bridgeMode: mode } = this.plan
    const { argv, cwd } = this.#command()
    this.#bridge = await startStdioBridge({
      command: argv,
      mode,
      env,
      cwd,
      host: '127.0.0.1',
      port,
      log: silentLog,
      version,
      onLine: (line) => this.#keep(line),
      onEnded: (why, output) => this.#ended(why, output),
      ahead: false,
      showOutput: true,
    })
    // Asked to stop while it started.
    if (this.#isStopping) await this.#bridge.close()
    this.#ready()
    const why = await this.#bridge.failed
    await this.#bridge.close()
    return why
  }

  /** Looked up at each start: npx may have installed the package since. */
  #command(): { readonly argv: readonly string[]; readonly cwd: string } {
    const cwd = process.cwd()
    return { argv: startedCommand(this.plan.argv, cwd, this.plan.env), cwd }
  }

  /** Records that the process of one session ended. The next session gets another process. */
  #ended(why: string, output: readonly string[]): void {
    if (this.#isStopping) return
    const lastLine = output.at(-1)
    const lastEnd = lastLine === undefined ? why : `${why}: ${lastLine}`
    this.#set({ ...this.state, restarts: this.state.restarts + 1, lastEnd })
  }

  /** Error message with which a stdio server refused to open a session. */
  get refusal(): string | undefined {
    return this.state.phase === 'ready' ? this.#bridge?.refusal : undefined
  }

  /**
   * Set while a stdio server has not answered its first request: when it was started, in milliseconds since the
   * epoch, and its last lines of output.
   */
  get starting(): { readonly since: number; readonly lines: readonly string[] } | undefined {
    const since = this.state.phase === 'ready' ? this.#bridge?.startingSince : undefined
    return since === undefined ? undefined : { since, lines: this.#lines }
  }

  async #awaitReady(gone: AbortSignal): Promise<void> {
    const { port, readyPath } = this.plan
    const deadline = performance.now() + this.#startMs
    while (!gone.aborted && !this.#isStopping) {
      const waitsFor = readyPath
        ? await readiness(`http://127.0.0.1:${port}${readyPath}`)
        : (await accepts(port))
          ? undefined
          : `nothing listens on 127.0.0.1:${port}; its command must listen on {port} or on PORT`
      if (gone.aborted) return
      if (waitsFor === undefined) return this.#ready()
      if (performance.now() > deadline && this.state.phase === 'starting') this.#late(waitsFor)
      await this.#pause(probeEveryMs)
    }
  }

  #late(waitsFor: string): void {
    const why = `not ready after ${Math.round(this.#startMs / 1000)} s: ${waitsFor}`
    if (this.state.why !== why) this.#set({ phase: 'starting', why, lines: this.#lines })
  }

  #ready(): void {
    this.#readySince = performance.now()
    this.#set({ phase: 'ready' })
  }

  get #isStopping(): boolean {
    return this.#stopping.signal.aborted
  }

  async #pause(ms: number): Promise<void> {
    await sleep(ms, undefined, { signal: this.#stopping.signal }).catch(() => undefined)
  }

  #keep(line: string): void {
    this.#lines = [...this.#lines.slice(-maxLines + 1), line]
    this.#callbacks.onLine(line)
  }

  #set(state: Partial<RunnerState> & Pick<RunnerState, 'phase'>): void {
    const { restarts, lastEnd } = this.state
    this.state = { restarts, ...(lastEnd !== undefined && { lastEnd }), ...state }
    if (!this.#isStopping) this.#callbacks.onChange()
  }
}

/** Returns why a process could not be started. Node's own message about a NUL character shows the value, which may be a secret. */
function whyNotStarted(error: unknown): string {
  if (!(error instanceof Error)) return 'it could not be started'
  const isNul = 'code' in error && error.code === 'ERR_INVALID_ARG_VALUE'
  return isNul ? 'an argument or a variable contains a NUL character' : error.message
}
