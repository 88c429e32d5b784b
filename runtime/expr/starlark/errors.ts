/** What goes wrong in a script, with the place where it did. Messages are for whoever wrote the script. */

/** Counted from one; columns in characters. */
export interface SourcePosition {
  readonly line: number
  readonly column: number
}

/** A function that was being carried out when a script failed, and where it was. */
export interface Trace extends SourcePosition {
  readonly name: string
}

export class StarlarkError extends Error {
  /** Where: for errors of the text, and once a running function has failed. */
  position: SourcePosition | undefined
  /** Functions in flight, innermost first; empty for errors of the text. */
  trace: readonly Trace[] = []

  constructor(message: string, position?: SourcePosition) {
    super(message)
    this.name = 'StarlarkError'
    this.position = position
  }

  /** The message with its place: `script.star:3:7: division by zero (in f, called from line 9)`. */
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

/** One of the limits of a script was reached; nothing that the script does can help. */
export class LimitError extends StarlarkError {
  constructor(message: string) {
    super(message)
    this.name = 'LimitError'
  }
}
