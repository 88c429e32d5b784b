/** Masks text. Must not throw. */
export type MaskText = (text: string) => string

/** Masks recorded call data (audit log, spans, console) beyond credentials. The current guardrails provide the mask. */
export class RecordMask {
  #begin: (() => MaskText) | undefined

  /** Replaces the mask. An undefined `begin` turns masking off. */
  replace(begin: (() => MaskText) | undefined): void {
    this.#begin = begin
  }

  /** The mask is valid for one record within this turn. The mask can limit the work for the record. */
  begin(): MaskText | undefined {
    return this.#begin?.()
  }
}
