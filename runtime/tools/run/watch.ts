/**
 * Watches what stands behind the one address of `gatehouse run`: tells the address, what answers and what does not, and each
 * change of it.
 *
 * The address is told as soon as nothing is gained by waiting: everything answers or is known not to, or it has listened for
 * some seconds. Whoever connects earlier misses tools.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { clientAddressesOf } from '../../toolkit/local/screen/client-addresses.ts'
import type { DevSession, WorkloadView } from '../../toolkit/local/session.ts'
import { forTerminal, oneLine } from '../../toolkit/terminal/plain-text.ts'
import { roundSecondsSince, secondsSince } from '../../toolkit/local/screen/lines.ts'

export type End =
  | { readonly state: 'stopped' }
  /** Nothing answers, and nothing is expected to. */
  | { readonly state: 'failed'; readonly missing: readonly Missing[] }

/** A server that does not answer. */
export interface Missing {
  readonly name: string
  readonly why: string
  /** The last lines that its program printed. */
  readonly lines: readonly string[]
  /** The code that its program ended with. */
  readonly code: number | undefined
}

export interface RunWatchOptions {
  readonly names: readonly string[]
  /** Lines that a server's program printed last. */
  readonly linesOf: (name: string) => readonly string[]
  /** When nothing answers after this time, it ends. */
  readonly timeoutMs: number
  readonly signal: AbortSignal
  /** Called once, with the address. */
  readonly onAddress: (url: string) => Promise<void>
  /** Called with a sentence for each change of a server's state. */
  readonly onChange: (name: string, sentence: string) => void
  readonly onMissing: (missing: Missing) => void
  /** Called when all servers answer, for the first time. */
  readonly onComplete: () => void
}

const stepMs = 200
const laterStepMs = 1000
const slowMs = 8000
/** How long the address is held back for servers that are still starting. */
const maxWaitMs = 3000
const serving: ReadonlySet<string> = new Set(['healthy', 'degraded'])
/** States of a server that is there and does not answer, whatever is waited for. */
const silentStates: ReadonlySet<string> = new Set(['unhealthy', 'unauthenticated'])

interface Seen {
  /** Sentence that was told last; undefined: nothing yet. */
  told?: string
  answered: boolean
  /** How often its process was restarted. */
  restarts: number
}

/** Runs until the signal, or until nothing answers and nothing is expected to. */
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
  readonly #seen = new Map<string, Seen>()
  readonly #since = performance.now()
  #openSince: number | undefined
  #isTold = false
  #hasAnswered = false

  constructor(session: DevSession, options: RunWatchOptions) {
    this.#session = session
    this.#options = options
  }

  async step(): Promise<End | undefined> {
    const { names, timeoutMs, signal } = this.#options
    const [address] = await clientAddressesOf(this.#session, undefined)
    if (signal.aborted) return { state: 'stopped' }
    const health = new Map(address?.backends.map((backend) => [backend.name, backend.health]))
    const absent = names.filter((name) => !serving.has(health.get(name) ?? ''))
    const lost = absent.flatMap((name) => lostOf(name, this.#session, health.get(name)) ?? [])
    this.#hasAnswered ||= absent.length < names.length
    const elapsed = performance.now() - this.#since
    if (!this.#hasAnswered && (lost.length === names.length || elapsed > timeoutMs)) {
      const silent = absent.filter((name) => !lost.some((one) => one.name === name))
      return { state: 'failed', missing: [...lost, ...silent.map((name) => this.#silent(name))] }
    }
    if (address && (this.#isOpen() || absent.length === 0)) {
      const isSettled = absent.every((name) => silentStates.has(health.get(name) ?? '') || isIn(lost, name))
      if (isSettled || this.#isWaitOver()) await this.#tellAddress(address.url)
    }
    for (const name of names) this.#tellState(name, { isAbsent: absent.includes(name), lost, elapsed })
    if (absent.length === 0 && !this.isComplete) {
      this.isComplete = true
      this.#options.onComplete()
    }
    return undefined
  }

  /** The virtual server listens. */
  #isOpen(): boolean {
    const isOpen = this.#session.workloads.some(
      ({ parent, phase }) => parent.kind === 'VirtualMCPServer' && phase === 'ready',
    )
    if (isOpen) this.#openSince ??= performance.now()
    return isOpen
  }

  #isWaitOver(): boolean {
    return this.#openSince !== undefined && performance.now() - this.#openSince > maxWaitMs
  }

  async #tellAddress(url: string): Promise<void> {
    if (this.#isTold) return
    this.#isTold = true
    await this.#options.onAddress(url)
  }

  #tellState(name: string, state: { isAbsent: boolean; lost: readonly Missing[]; elapsed: number }): void {
    const seen = this.#seen.get(name) ?? { answered: false, restarts: 0 }
    this.#seen.set(name, seen)
    const missing = state.lost.find((one) => one.name === name)
    const view = this.#viewOf(name)
    this.#tellEnd(name, seen, view)
    const seconds = view?.starting ? roundSecondsSince(view.starting.since) : 0
    const sentence = sentenceOf(seen, missing, { ...state, seconds, refusal: view?.refusal })
    if (sentence === undefined || sentence === seen.told) return
    // Its first answer at a quick start is what everybody expects.
    const isNews = seen.told !== undefined || state.isAbsent || this.#isTold
    seen.told = sentence
    seen.answered ||= !state.isAbsent
    if (missing) this.#options.onMissing(missing)
    else if (isNews) this.#options.onChange(name, sentence)
  }

  /** Returns the view of the server's process. */
  #viewOf(name: string): WorkloadView | undefined {
    const views = this.#session.workloads.filter(({ parent }) => parent.metadata.name === name)
    return views.find((view) => view.starting ?? view.refusal ?? view.lastEnd)
  }

  /** Reports the end of a process that had worked. The next session starts another one. */
  #tellEnd(name: string, seen: Seen, view: WorkloadView | undefined): void {
    const { restarts = 0, lastEnd, phase } = view ?? {}
    const isNew = restarts > seen.restarts && phase === 'ready' && lastEnd !== undefined
    seen.restarts = restarts
    if (isNew) this.#options.onChange(name, `${forTerminal(lastEnd)}; it restarts with the next session`)
  }

  #silent(name: string): Missing {
    const { starting, refusal } = this.#viewOf(name) ?? {}
    const still = starting ? `: still starting after ${secondsSince(starting.since)} s` : ''
    const why = refusal === undefined ? `does not answer${still}` : `refuses to open a session: ${refusal}`
    return { name, why, lines: this.#options.linesOf(name), code: undefined }
  }
}

interface ServerState {
  readonly isAbsent: boolean
  readonly elapsed: number
  /** Rounded seconds since it was started; 0 unless it is starting. */
  readonly seconds: number
  readonly refusal: string | undefined
}

function sentenceOf(
  { answered, told }: Seen,
  missing: Missing | undefined,
  { isAbsent, elapsed, seconds, refusal }: ServerState,
): string | undefined {
  if (missing) return missing.why
  if (!isAbsent) return 'answers'
  if (refusal !== undefined) return `refuses to open a session: ${oneLine(refusal)}`
  if (answered) return 'does not answer any more'
  if (elapsed <= slowMs || (seconds === 0 && told !== undefined)) return undefined
  const state = seconds > 0 ? `is starting (${seconds} s)` : 'does not answer yet'
  return `${state}; it may be installing a package (-v shows its output)`
}

function isIn(missing: readonly Missing[], name: string): boolean {
  return missing.some((one) => one.name === name)
}

/** What is known to be lost: its program ended or cannot be started, or it wants a login. */
function lostOf(name: string, session: DevSession, health: string | undefined): Missing | undefined {
  const views = session.workloads.filter(({ parent }) => parent.metadata.name === name)
  const failed = views.find(({ phase }) => phase === 'failed' || phase === 'not runnable')
  if (failed) return ended(name, failed)
  if (health !== 'unauthenticated') return undefined
  return { name, why: 'wants a login, or refuses the credentials that it got', lines: [], code: undefined }
}

function ended(name: string, { why = 'failed', lines = [] }: WorkloadView): Missing {
  const code = /^exited with code (\d+)$/.exec(why)?.[1]
  return { name, why, lines, code: code === undefined ? undefined : Number(code) }
}
