/** Counts what a replay of recorded decisions comes to, whoever decides now. */
import { type RecordedLine, recordedLine } from './recorded.ts'

export interface Flip {
  /** Number of the line, from 1. */
  readonly line: number
  readonly principal: string
  readonly target: string
  readonly from: 'allow' | 'deny'
  readonly to: 'allow' | 'deny'
  /** What determines the new decision; empty when nothing says anything. */
  readonly policies: readonly string[]
}

export interface Replay {
  /** Lines with a decision. */
  readonly decisions: number
  /** Lines without one, or that are no JSON. */
  readonly skipped: number
  readonly unchanged: number
  readonly inconclusive: number
  /** Why lines are inconclusive: what they do not tell, with the number of lines; the most frequent first. */
  readonly lacking: readonly (readonly [string, number])[]
  readonly flips: readonly Flip[]
  /** Ids of policies that determined no decision. */
  readonly idle: readonly string[]
}

/** Reasons that are reported. */
const maxLacking = 20

export class ReplayTally {
  readonly #counts = { decisions: 0, skipped: 0, unchanged: 0, inconclusive: 0 }
  readonly #flips: Flip[] = []
  readonly #lacking = new Map<string, number>()
  #line = 0

  get decisions(): number {
    return this.#counts.decisions
  }

  /** The next line; undefined where it has no decision. */
  read(text: string): RecordedLine | undefined {
    this.#line++
    const line = recordedLine(text)
    if (line) this.#counts.decisions++
    else if (text.trim() !== '') this.#counts.skipped++
    return line
  }

  /** The line that was read does not tell enough. */
  lacks(names: readonly string[]): void {
    this.#counts.inconclusive++
    for (const name of names) this.#lacking.set(name, (this.#lacking.get(name) ?? 0) + 1)
  }

  /** The line that was read has a decision now. */
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
