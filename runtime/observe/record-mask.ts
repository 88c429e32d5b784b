/** Must not throw. */
export type MaskText = (text: string) => string

/** Masks recorded call data (audit log, spans, console) beyond credentials. The current guardrails provide the mask. */
export class RecordMask {
  #begin: (() => MaskText) | undefined

  /** Undefined when nothing is masked. */
  replace(begin: (() => MaskText) | undefined): void {
    this.#begin = begin
  }

  /** Valid for one record within this turn; may limit the work done for the record. */
  begin(): MaskText | undefined {
    return this.#begin?.()
  }
}
