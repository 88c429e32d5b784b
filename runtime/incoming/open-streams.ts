/**
 * Ends open streams when the caller's token has expired or its grant was revoked.
 *
 * One timer checks all streams of a process, and runs only while streams are open. Each feature limits the number of
 * its open streams.
 */
import type { Caller, CallerStreams } from '../net/index.ts'
import { skewSec } from '../oauth/index.ts'

const sweepMs = 1_000
/**
 * Number of sweeps per grant check; one check every 3 s. A grant status may itself be 5 s old, so 2 s of the 10 s limit
 * remain.
 */
const sweepsPerCheck = 3
/** Time after which a stream is ended if its grant could not be checked. */
const maxUncheckedMs = 10_000
/** Maximum number of concurrent grant checks. */
const maxChecks = 32

interface OpenStream {
  readonly caller: Caller
  readonly end: () => void
  /** Milliseconds since the epoch; Infinity for a token that does not expire. */
  readonly expiresAt: number
  /** Time when the grant was last confirmed to be active. */
  checkedAt: number
}

export interface OpenStreamsOptions {
  readonly now: () => number
  /** Resolves to false if the grant behind the caller's token was revoked. May reject if the check fails. */
  readonly isLive?: ((caller: Caller) => Promise<boolean>) | undefined
}

export class OpenStreams implements CallerStreams {
  readonly #options: OpenStreamsOptions
  readonly #streams = new Set<OpenStream>()
  #timer: NodeJS.Timeout | undefined
  #sweeps = 0
  #checking = false

  constructor(options: OpenStreamsOptions) {
    this.#options = options
  }

  get size(): number {
    return this.#streams.size
  }

  add(caller: Caller, end: () => void): () => void {
    const now = this.#options.now()
    const stream: OpenStream = { caller, end, expiresAt: endOf(caller, now), checkedAt: now }
    if (stream.expiresAt === Infinity && !this.#options.isLive) return () => {}
    this.#streams.add(stream)
    this.#timer ??= setInterval(() => void this.sweep(), sweepMs).unref()
    return () => this.#remove(stream)
  }

  #remove(stream: OpenStream): void {
    this.#streams.delete(stream)
    if (this.#streams.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  #end(stream: OpenStream): void {
    if (!this.#streams.has(stream)) return
    this.#remove(stream)
    stream.end()
  }

  /**
   * Ends streams that have expired or could not be checked for too long. Every third sweep also ends streams whose
   * grant was revoked. Never rejects.
   */
  async sweep(): Promise<void> {
    const { isLive } = this.#options
    this.#endOverdue()
    if (!isLive || this.#checking || ++this.#sweeps % sweepsPerCheck !== 0) return
    this.#checking = true
    try {
      await this.#checkGrants(isLive)
    } finally {
      this.#checking = false
    }
    this.#endOverdue()
  }

  #endOverdue(): void {
    const now = this.#options.now()
    const checkedSince = this.#options.isLive ? now - maxUncheckedMs : -Infinity
    for (const stream of this.#streams)
      if (now >= stream.expiresAt || stream.checkedAt < checkedSince) this.#end(stream)
  }

  async #checkGrants(isLive: (caller: Caller) => Promise<boolean>): Promise<void> {
    const grants = [...Map.groupBy(this.#streams, ({ caller }) => caller)]
    for (let i = 0; i < grants.length; i += maxChecks) {
      const checks = grants
        .slice(i, i + maxChecks)
        .map(([caller, streams]) => this.#check(isLive, caller, streams))
      // Skip the remaining grants when the store does not respond.
      if (!(await Promise.all(checks)).includes(true)) break
    }
  }

  /** Resolves to false if the grant cannot be checked. */
  async #check(
    isLive: (caller: Caller) => Promise<boolean>,
    caller: Caller,
    streams: readonly OpenStream[],
  ): Promise<boolean> {
    const checkedAt = this.#options.now()
    try {
      if (await isLive(caller)) for (const stream of streams) stream.checkedAt = checkedAt
      else for (const stream of streams) this.#end(stream)
      return true
    } catch {
      // Move these streams to the end, so that the next round checks the other grants first. Only part of the store may
      // be down.
      for (const stream of streams) if (this.#streams.delete(stream)) this.#streams.add(stream)
      return false
    }
  }

  /** Ends all streams, so callers must authenticate again. */
  close(): void {
    for (const stream of this.#streams) this.#end(stream)
  }
}

/**
 * Returns the time at which the stream must end. A token that has expired within the clock tolerance can still open a
 * stream, which then lasts until the tolerance ends.
 */
function endOf({ claims }: Caller, now: number): number {
  const { exp } = claims
  if (typeof exp !== 'number') return Infinity
  return exp * 1_000 > now ? exp * 1_000 : (exp + skewSec) * 1_000
}
