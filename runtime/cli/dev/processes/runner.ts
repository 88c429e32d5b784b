/**
 * Keeps one workload running as its plan says: starts it, waits until it is ready, restarts it with backoff when it
 * ends by itself, and stops it.
 *
 * States go one way through `onChange`; the session turns them into the workload's status.
 */
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { silentLog } from '../../../net/index.ts'
import { type StdioBridge, startStdioBridge } from '../../../proxy/index.ts'
import { version } from '../../version.ts'
import type { Plan } from '../plan.ts'
import { type LocalProcess, startProcess } from './process.ts'

export type RunnerState =
  | { readonly phase: 'starting' }
  | { readonly phase: 'ready' }
  | { readonly phase: 'failed'; readonly why: string; readonly lines: readonly string[] }

/** Lines of output stored for the message when a process fails. */
const keptLines = 20
const graceMs = 3000
const probeEveryMs = 100
const backoffMs = [500, 1000, 2000, 4000, 8000, 15000] as const

export class Runner {
  readonly plan: Plan
  state: RunnerState = { phase: 'starting' }
  readonly #onChange: () => void
  readonly #onLine: (line: string) => void
  readonly #stopping = new AbortController()
  #process: LocalProcess | undefined
  #bridge: StdioBridge | undefined
  #lines: string[] = []
  #loop: Promise<void>

  constructor(plan: Plan, callbacks: { onChange: () => void; onLine: (line: string) => void }) {
    this.plan = plan
    this.#onChange = callbacks.onChange
    this.#onLine = callbacks.onLine
    this.#loop = this.#run()
  }

  /** Ends the process and everything it started. Resolves when it is gone. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    await Promise.all([this.#process?.stop(graceMs), this.#bridge?.close()])
    await this.#loop
  }

  async #run(): Promise<void> {
    for (let attempt = 0; !this.#stopping.signal.aborted; attempt++) {
      this.#set({ phase: 'starting' })
      const why = this.plan.stdio ? await this.#runBridge() : await this.#runProcess()
      if (this.#stopping.signal.aborted) return
      if (this.state.phase === 'ready') attempt = 0
      this.#set({ phase: 'failed', why, lines: this.#lines })
      const wait = backoffMs[Math.min(attempt, backoffMs.length - 1)]
      await sleep(wait, undefined, { signal: this.#stopping.signal }).catch(() => undefined)
    }
  }

  async #runProcess(): Promise<string> {
    this.#lines = []
    const started = startProcess({ ...this.plan, cwd: process.cwd() }, (line) => this.#keep(line))
    this.#process = started
    const gone = new AbortController()
    void this.#awaitReady(gone.signal)
    const why = await started.exited
    gone.abort()
    return why
  }

  /** A server on stdin and stdout: the bridge starts it when the first client comes, and again when it ends. */
  async #runBridge(): Promise<string> {
    this.#lines = []
    const { argv, env, port } = this.plan
    try {
      this.#bridge = await startStdioBridge({
        command: argv,
        env,
        cwd: process.cwd(),
        host: '127.0.0.1',
        port,
        log: silentLog,
        version,
        onLine: (line) => this.#keep(line),
      })
    } catch (error) {
      return error instanceof Error ? error.message : 'it could not be started'
    }
    this.#set({ phase: 'ready' })
    return await this.#bridge.failed
  }

  async #awaitReady(gone: AbortSignal): Promise<void> {
    const { port, readyPath } = this.plan
    while (!gone.aborted && !this.#stopping.signal.aborted) {
      const ready = readyPath ? await responses(`http://127.0.0.1:${port}${readyPath}`) : await accepts(port)
      if (ready && !gone.aborted) return this.#set({ phase: 'ready' })
      await sleep(probeEveryMs)
    }
  }

  #keep(line: string): void {
    this.#lines = [...this.#lines.slice(-keptLines + 1), line]
    this.#onLine(line)
  }

  #set(state: RunnerState): void {
    this.state = state
    if (!this.#stopping.signal.aborted) this.#onChange()
  }
}

async function responses(url: string): Promise<boolean> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(2000) })
    await response.body?.cancel()
    return response.ok
  } catch {
    return false
  }
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })
}
