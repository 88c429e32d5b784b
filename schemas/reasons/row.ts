/** One line of the table of reasons. */
export interface ReasonRow {
  readonly reasons: readonly string[]
  /** What is the matter. Markdown. */
  readonly means: string
  /** The next step; empty when there is nothing to do. Markdown. */
  readonly step: string
  /** Nothing is broken: something that was asked for is not done, or may surprise. */
  readonly isWarning?: boolean
}
