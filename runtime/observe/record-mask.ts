/**
 * Masks what is recorded of calls (audit log, spans, console) beyond credentials: by the guardrails in force, which this module
 * does not know.
 */

/** Must not throw. */
export type MaskText = (text: string) => string

export class RecordMask {
  #begin: (() => MaskText) | undefined

  /** Undefined: nothing is masked. */
  replace(begin: (() => MaskText) | undefined): void {
    this.#begin = begin
  }

  /** For one record, within this turn: it may bound how much work that is. */
  begin(): MaskText | undefined {
    return this.#begin?.()
  }
}
