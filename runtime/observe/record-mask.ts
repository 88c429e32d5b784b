/** Masks text. Must not throw. */
export type MaskText = (text: string) => string

/**
 * Masks data of recorded calls (audit log, spans, console) in addition to credentials. The current guardrails provide
 * the mask.
 */
export class RecordMask {
  #begin: (() => MaskText) | undefined

  /** Replaces the mask. An undefined `begin` turns masking off. */
  replace(begin: (() => MaskText) | undefined): void {
    this.#begin = begin
  }

  /**
   * The mask is valid for one record within this turn, and can limit the amount of work that it does for the record.
   */
  begin(): MaskText | undefined {
    return this.#begin?.()
  }
}
