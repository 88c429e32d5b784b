/** Provides a script's tokens to the parser, and limits nesting. */
import { StarlarkError } from '../errors.ts'
import { type StarlarkToken, tokenName } from './tokens.ts'

/** Maximum nesting depth. The depth is limited, because every traversal of the tree recurses once per level. */
const maxDepth = 200

export class TokenReader {
  readonly #tokens: readonly StarlarkToken[]
  #at = 0
  #depth = 0

  constructor(tokens: readonly StarlarkToken[]) {
    this.#tokens = tokens
  }

  get current(): StarlarkToken {
    return this.#tokens[this.#at] ?? { kind: 'end of file', text: '', line: 1, column: 1 }
  }

  get next(): StarlarkToken | undefined {
    return this.#tokens[this.#at + 1]
  }

  take(): StarlarkToken {
    const token = this.current
    if (this.#at < this.#tokens.length) this.#at++
    return token
  }

  is(...kinds: readonly string[]): boolean {
    return kinds.includes(this.current.kind)
  }

  /** Consumes the next token if it has this kind. */
  has(kind: string): boolean {
    if (this.current.kind !== kind) return false
    this.take()
    return true
  }

  expect(kind: string): StarlarkToken {
    if (this.current.kind !== kind) throw this.unexpected(tokenName({ kind, text: '' }))
    return this.take()
  }

  identifier(): StarlarkToken {
    if (!this.is('identifier')) throw this.failure('not an identifier')
    return this.take()
  }

  unexpected(want: string): StarlarkError {
    return this.failure(`syntax error: got ${tokenName(this.current)}, want ${want}`)
  }

  failure(message: string, { line, column }: { line: number; column: number } = this.current): StarlarkError {
    return new StarlarkError(message, { line, column })
  }

  /** Reads one level of nesting. Throws when the nesting is too deep. */
  nested<T>(read: () => T): T {
    if (++this.#depth > maxDepth) throw this.failure('the script is nested too deeply')
    const result = read()
    this.#depth--
    return result
  }

  /** Checks the length of a chain, because the depth of its tree equals the chain's length. */
  checkLength(length: number): void {
    if (length > maxDepth * 4) throw this.failure('the expression is too long; use a variable for part of it')
  }
}
