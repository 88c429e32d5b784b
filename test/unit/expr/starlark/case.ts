/** A script and its expected result. */
export interface Case {
  readonly script: string
  /** The result in the format of `repr`. */
  readonly value?: string
  /** Line, column and message of the error. */
  readonly error?: string
  readonly logs?: readonly string[]
}
