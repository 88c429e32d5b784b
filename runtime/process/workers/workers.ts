/**
 * Manages the worker processes of a primary process. Starts the workers with this process's arguments, keeps them
 * running, passes them the connections to one port, and stops them gracefully. The primary process does not handle
 * requests.
 *
 * The primary replaces a worker that dies, after increasing delays if workers die early.
 */
import { isFields } from '../../../schemas/index.ts'
import cluster, { type Worker } from 'node:cluster'
import { randomBytes } from 'node:crypto'
import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Log } from '../../net/index.ts'
import { type LineFile, makeLineFile, standardErrorLines } from '../../observe/index.ts'
import { type Handlers, type Line, openChannel, type WorkerChannel } from './channel.ts'
import { type BindAddress, Distributor, type ConnectionTaker } from './distributor.ts'
import { forwardLines } from './whole-lines.ts'

/** Delays before a worker that exited early is replaced, and the age up to which an exit counts as early. */
export interface ReplacementWaits {
  readonly earlyMs: number
  readonly firstMs: number
  readonly longestMs: number
}

/** Interval between liveness checks, and the maximum time for which a worker may be unresponsive. */
export interface Silence {
  readonly lookMs: number
  readonly silentMs: number
}

const defaultSilence: Silence = { lookMs: 10_000, silentMs: 60_000 }
const defaultWaits: ReplacementWaits = { earlyMs: 10_000, firstMs: 1_000, longestMs: 30_000 }
/** Timeout for calls to workers. A call skips a worker that does not respond. */
const askMs = 5_000
/** Time after the grace period before workers are killed. */
const killMs = 2_000

export interface WorkersOptions extends BindAddress {
  readonly count: number
  readonly log: Log
  /** Functions that workers may call. */
  readonly offers: Handlers
  /** Called when a worker replaces a worker that died. */
  readonly onReplaced?: () => unknown
  readonly waits?: ReplacementWaits
  readonly silence?: Silence
  /** Program that the workers run, for tests. Default: this program. */
  readonly exec?: string
}

/** A worker and its state. */
interface Member {
  readonly channel: WorkerChannel
  /** Address at which other workers reach this worker; undefined until the worker starts serving. */
  peer: unknown
  isServing: boolean
  /** True when a liveness check was sent but has not been answered yet. */
  isAsked: boolean
}

/** A slot that successive workers occupy. */
interface Slot {
  /** Number of consecutive workers that died early. */
  earlyDeaths: number
}

export class Workers {
  readonly #options: WorkersOptions
  readonly #waits: ReplacementWaits
  readonly #silence: Silence
  readonly #distributor = new Distributor()
  readonly #members = new Map<Worker, Member>()
  /** Secret with which workers authenticate to each other. */
  readonly #secret = randomBytes(32).toString('base64url')
  #lead: Member | undefined
  #looking: NodeJS.Timeout | undefined
  #stdout: LineFile | undefined
  #closing = false

  private constructor(options: WorkersOptions) {
    this.#options = options
    this.#waits = options.waits ?? defaultWaits
    this.#silence = options.silence ?? defaultSilence
  }

  /**
   * Binds the port and starts the workers. Rejects with the system's error when the port cannot be bound, or with a
   * worker's error when the first workers cannot start.
   */
  static async start(options: WorkersOptions): Promise<Workers> {
    const workers = new Workers(options)
    try {
      await workers.#distributor.bind(options, options.log)
      await workers.#start()
      return workers
    } catch (error) {
      await workers.close(0)
      throw error
    }
  }

  /** The bound address. */
  get address(): { readonly address: string; readonly port: number } {
    const { address, port } = this.#distributor
    return { address, port }
  }

  get size(): number {
    return this.#members.size
  }

  async #start(): Promise<void> {
    // Lets workers write directly to a terminal, which keeps short lines whole. Workers can then also detect the
    // terminal.
    const stream = (fd: 1 | 2) => ((fd === 1 ? process.stdout : process.stderr).isTTY ? 'inherit' : 'pipe')
    cluster.setupPrimary({
      serialization: 'advanced',
      stdio: ['ignore', stream(1), stream(2), 'ipc'],
      ...(this.#options.exec === undefined ? {} : { exec: this.#options.exec }),
    })
    await Promise.all(Array.from({ length: this.#options.count }, () => this.#fork({ earlyDeaths: 0 })))
    this.#looking = setInterval(() => this.#look(), this.#silence.lookMs).unref()
  }

  /** Resolves when the worker starts serving. Rejects when the worker fails to start. */
  #fork(slot: Slot): Promise<void> {
    return new Promise((resolve, reject) => {
      const worker = cluster.fork()
      const startedAt = performance.now()
      this.#forwardOutput(worker)
      let taker: ConnectionTaker | undefined
      const channel = openChannel(lineOf(worker), {
        ...this.#options.offers,
        'workers.hello': () => ({ ...this.address, id: String(worker.id), secret: this.#secret }),
        'workers.serving': (peer) => {
          taker = this.#distributor.add((id, socket) => handOver(worker, id, socket))
          Object.assign(member, { peer, isServing: true })
          this.#chooseLead()
          resolve()
        },
        'workers.others': (argument) => this.#askOthers(member, argument),
        'workers.any': (argument) => this.#askAny(member, argument),
        'workers.peer': (id) => this.#peerOf(String(id)),
        'workers.failed'(argument) {
          const { message = 'a worker failed', ...fields } = isFields(argument) ? argument : {}
          reject(Object.assign(new Error(String(message)), fields))
        },
      })
      const member: Member = { channel, peer: undefined, isServing: false, isAsked: false }
      this.#members.set(worker, member)
      worker.on('message', (message: unknown) => {
        if (isFields(message) && typeof message['taken'] === 'number') taker?.taken(message['taken'])
      })
      worker.once('disconnect', () => taker?.gone())
      worker.once('exit', (code) => {
        taker?.gone()
        this.#members.delete(worker)
        if (this.#lead === member) this.#lead = undefined
        this.#chooseLead()
        reject(new Error(`a worker exited with code ${code} before it was ready`))
        if (!this.#closing) void this.#replace(slot, performance.now() - startedAt)
      })
    })
  }

  /** Replaces an unresponsive worker, because the worker blocks its connections. */
  #look(): void {
    const { silentMs } = this.#silence
    for (const [worker, member] of this.#members) {
      if (!member.isServing || member.isAsked) continue
      member.isAsked = true
      member.channel.call('workers.there', undefined, { withinMs: silentMs }).then(
        () => (member.isAsked = false),
        () => {
          if (this.#closing || !this.#members.has(worker)) return
          this.#options.log.error('a worker is not responding and is being killed', { silentMs })
          worker.process.kill('SIGKILL')
        },
      )
    }
  }

  #forwardOutput({ process: { stdout, stderr } }: Worker): void {
    if (stderr) forwardLines(stderr, (lines) => standardErrorLines().write(lines))
    if (!stdout) return
    this.#stdout ??= makeLineFile(1, {
      onLoss: (lines, err) =>
        this.#options.log.error('output from workers is lost, because standard output does not accept it', {
          lines,
          err,
        }),
    })
    forwardLines(stdout, this.#stdout.write)
  }

  async #replace(slot: Slot, livedMs: number): Promise<void> {
    const { earlyMs, firstMs, longestMs } = this.#waits
    const waitMs = livedMs < earlyMs ? Math.min(firstMs * 2 ** slot.earlyDeaths, longestMs) : 0
    slot.earlyDeaths = livedMs < earlyMs ? slot.earlyDeaths + 1 : 0
    this.#options.log.error('a worker exited unexpectedly and is being replaced', {
      livedMs: Math.round(livedMs),
      waitMs,
    })
    await sleep(waitMs)
    if (this.#closing) return
    try {
      await this.#fork(slot)
      await this.#options.onReplaced?.()
    } catch {
      // The worker's exit triggers the next attempt.
    }
  }

  /** Calls a function on every worker. Returns the results of the calls that succeed. */
  async ask(name: string, argument?: unknown): Promise<readonly unknown[]> {
    return this.#ask([...this.#members.values()], name, argument)
  }

  async #ask(members: readonly Member[], name: string, argument: unknown): Promise<readonly unknown[]> {
    const settled = await Promise.allSettled(
      members.map(({ channel }) => channel.call(name, argument, { withinMs: askMs })),
    )
    return settled.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
  }

  async #askOthers(caller: Member, asked: unknown): Promise<readonly unknown[]> {
    const { name, argument } = isFields(asked) ? asked : {}
    return this.#ask(this.#othersThan(caller), String(name), argument)
  }

  /** Calls the workers one after the other, until one returns true. */
  async #askAny(caller: Member, asked: unknown): Promise<boolean> {
    const { name, argument } = isFields(asked) ? asked : {}
    for (const member of this.#othersThan(caller))
      if ((await this.#ask([member], String(name), argument)).includes(true)) return true
    return false
  }

  #othersThan(caller: Member): readonly Member[] {
    return [...this.#members.values()].filter((member) => member !== caller && member.isServing)
  }

  #peerOf(id: string): unknown {
    for (const [worker, { peer }] of this.#members) if (String(worker.id) === id) return peer
    return undefined
  }

  /** Selects one worker for the work that only one process may perform. */
  #chooseLead(): void {
    if (this.#lead || this.#closing) return
    this.#lead = [...this.#members.values()].find(({ isServing }) => isServing)
    this.#lead?.channel.call('workers.lead').catch(() => {})
  }

  /** Workers have `graceMs` to complete requests in flight. Resolves when all workers have exited. */
  async close(graceMs: number): Promise<void> {
    if (this.#closing) return
    this.#closing = true
    clearInterval(this.#looking)
    await this.#distributor.close()
    const ends = [...this.#members.keys()].map(
      (worker) => new Promise((resolve) => worker.once('exit', resolve)),
    )
    const cut = setTimeout(() => {
      for (const worker of this.#members.keys()) worker.process.kill('SIGKILL')
    }, graceMs + killMs)
    for (const { channel } of this.#members.values())
      channel.call('workers.close', { graceMs }).catch(() => {})
    await Promise.all(ends)
    clearTimeout(cut)
  }
}

/** Keeps the connection open in this process until the worker has accepted it. */
function handOver(worker: Worker, id: number, socket: Socket): void {
  if (!worker.isConnected()) return
  // After a failure, the worker exits, and the connection is passed to another worker.
  worker.process.send?.({ connection: id }, socket, { keepOpen: true }, () => {})
}

function lineOf(worker: Worker): Line {
  return {
    send(message) {
      if (worker.isConnected()) worker.process.send?.(message, undefined, undefined, () => {})
    },
    onMessage: (listener) => void worker.on('message', listener),
    onEnd: (listener) => void worker.once('exit', listener),
  }
}
