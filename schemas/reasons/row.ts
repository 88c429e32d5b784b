/** A row in the table of reasons. */
export interface ReasonRow {
  readonly reasons: readonly string[]
  /** Description of the problem, in Markdown. */
  readonly means: string
  /** The next step, in Markdown; empty when no action is needed. */
  readonly step: string
  /** True when nothing is broken, but a setting has no effect or a surprising effect. */
  readonly isWarning?: boolean
}
