/** A script and what becomes of it. */
export interface Case {
  readonly script: string
  /** The result as `repr` writes it. */
  readonly value?: string
  /** Line, column and message of the error. */
  readonly error?: string
  readonly logs?: readonly string[]
}
