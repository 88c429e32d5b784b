/** Script errors, each with its position. The messages are written for the author of the script. */

/** Line and column, both one-based; columns count characters. */
export interface SourcePosition {
  readonly line: number
  readonly column: number
}

/** A function that was on the call stack when a script failed, and its position. */
export interface Trace extends SourcePosition {
  readonly name: string
}

export class StarlarkError extends Error {
  /** Position of the error; set for syntax errors, and once a running function has failed. */
  position: SourcePosition | undefined
  /** Functions in the call stack, innermost first; empty for syntax errors. */
  trace: readonly Trace[] = []

  constructor(message: string, position?: SourcePosition) {
    super(message)
    this.name = 'StarlarkError'
    this.position = position
  }

  /** Returns the message with its position: `script.star:3:7: division by zero (in f, called from line 9)`. */
  describe(file: string): string {
    if (!this.position) return this.message
    const { line, column } = this.position
    return `${file}:${line}:${column}: ${this.message}${this.#callers()}`
  }

  #callers(): string {
    const [inner, ...outer] = this.trace
    if (!inner || outer.length === 0) return ''
    const lines = outer.slice(0, 5).map(({ line }) => `line ${line}`)
    return ` (in ${inner.name}, called from ${lines.join(', ')})`
  }
}

/** Thrown when a script reaches a limit. Scripts cannot catch this error. */
export class LimitError extends StarlarkError {
  constructor(message: string) {
    super(message)
    this.name = 'LimitError'
  }
}
