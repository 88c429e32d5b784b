/**
 * Scans progress and log messages before they are forwarded. The messages come from a call, or from a session outside
 * any call. Keeps the messages in order, and forwards a call's messages before its result. Drops messages that are
 * rejected, cannot be scanned, or do not fit into the small queue.
 */
import { inTurns, type TurnWork } from '../../../mcp/index.ts'
import type { OperationContext } from '../../model/operation.ts'
import { type GuardrailFinding, scanValue, type ScanResult } from './scan/scan-value.ts'
import type { ActiveRule } from './rules.ts'
import { ScanLimit } from './scan/matches.ts'

const maxWaitingBytes = 4 * 1024 * 1024

export interface NoteReporter {
  readonly found: (findings: readonly GuardrailFinding[]) => void
  readonly failed: (error: unknown) => void
}

type Send = (params: Buffer) => void

export class Notes {
  readonly #rules: readonly ActiveRule[]
  readonly #signal: AbortSignal
  readonly #reporter: NoteReporter
  #waitingBytes = 0
  #waiting: Promise<void> | undefined

  constructor(signal: AbortSignal, rules: readonly ActiveRule[], reporter: NoteReporter) {
    this.#rules = rules
    this.#signal = signal
    this.#reporter = reporter
  }

  /** Returns functions that scan progress and log messages and then forward the messages to a context. */
  sinksOf(context: OperationContext): { readonly progress: Send; readonly log: Send } {
    return {
      progress: (params) => this.take(params, (bytes) => context.progress(bytes)),
      log: (params) => this.take(params, (bytes) => context.log(bytes)),
    }
  }

  /** Resolves when all messages have been forwarded. Never rejects. */
  async end(): Promise<void> {
    await this.#waiting
  }

  take(params: Buffer, send: Send): void {
    const work = scanValue(params, this.#rules, { skips: noteSkips, fixed }, this.#signal)
    if (this.#waiting) {
      this.#wait(params, send, work)
      return
    }
    try {
      // Most messages are small. Immediately forward a message that can be scanned in the first slice.
      const first = work.next()
      if (first.done) this.#done(first.value, send)
      else this.#wait(params, send, work)
    } catch (error) {
      this.#reporter.failed(error)
    }
  }

  #wait(params: Buffer, send: Send, work: TurnWork<ScanResult>): void {
    if (this.#waitingBytes + params.length > maxWaitingBytes) {
      this.#reporter.failed(new ScanLimit('too many progress and log messages to scan'))
      return
    }
    this.#waitingBytes += params.length
    const before = this.#waiting ?? Promise.resolve()
    const own = before
      .then(() => inTurns(work))
      .then(
        (scanned) => this.#done(scanned, send),
        (error: unknown) => {
          if (!this.#signal.aborted) this.#reporter.failed(error)
        },
      )
      .finally(() => {
        this.#waitingBytes -= params.length
        if (this.#waiting === own) this.#waiting = undefined
      })
    this.#waiting = own
  }

  #done({ bytes, findings, refusedBy }: ScanResult, send: Send): void {
    this.#reporter.found(findings)
    if (refusedBy === undefined) send(bytes)
  }
}

/** The changed resource. Clients identify this resource by its URI. */
const fixed = [['uri']] as const
/** The progress token belongs to the client. */
const noteSkips = [['progressToken']] as const
