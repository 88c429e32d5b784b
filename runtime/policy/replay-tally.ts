/** Tallies the results of replaying recorded decisions. */
import { type RecordedLine, recordedLine } from './recorded.ts'

export interface Flip {
  /** Line number, starting at 1. */
  readonly line: number
  readonly principal: string
  readonly target: string
  readonly from: 'allow' | 'deny'
  readonly to: 'allow' | 'deny'
  /** Determining policies of the new decision; empty when no policy applies. */
  readonly policies: readonly string[]
}

export interface Replay {
  /** Number of lines with a decision. */
  readonly decisions: number
  /** Number of lines that have no decision or are invalid JSON. */
  readonly skipped: number
  readonly unchanged: number
  readonly inconclusive: number
  /** Data missing from inconclusive lines, with the number of lines; most frequent first. */
  readonly lacking: readonly (readonly [string, number])[]
  readonly flips: readonly Flip[]
  /** Ids of policies that did not determine any decision. */
  readonly idle: readonly string[]
}

/** Maximum number of reported reasons. */
const maxLacking = 20

export class ReplayTally {
  readonly #counts = { decisions: 0, skipped: 0, unchanged: 0, inconclusive: 0 }
  readonly #flips: Flip[] = []
  readonly #lacking = new Map<string, number>()
  #line = 0

  get decisions(): number {
    return this.#counts.decisions
  }

  /** Reads the next line. Returns undefined when the line contains no decision. */
  read(text: string): RecordedLine | undefined {
    this.#line++
    const line = recordedLine(text)
    if (line) this.#counts.decisions++
    else if (text.trim() !== '') this.#counts.skipped++
    return line
  }

  /** Records that the last line is inconclusive. */
  lacks(names: readonly string[]): void {
    this.#counts.inconclusive++
    for (const name of names) this.#lacking.set(name, (this.#lacking.get(name) ?? 0) + 1)
  }

  /** Records the new decision for the last line. */
  decided(
    { principal, request, decision: from }: RecordedLine,
    to: Flip['to'],
    policies: readonly string[],
  ): void {
    if (to === from) this.#counts.unchanged++
    else this.#flips.push({ line: this.#line, principal, target: request.id, from, to, policies })
  }

  result(idle: readonly string[]): Replay {
    const lacking = [...this.#lacking].sort(([, a], [, b]) => b - a).slice(0, maxLacking)
    return { ...this.#counts, lacking, flips: this.#flips, idle }
  }
}
