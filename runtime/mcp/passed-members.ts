/** Members of a result that have gone on to the client while the result was still arriving. */
export interface PassedMembers {
  readonly names: readonly string[]
  /** Bytes of their names and values. */
  readonly bytes: number
}
