/** The tokens of a script as the parser takes them, and the bound on how deep constructs may be nested. */
import { StarlarkError } from '../errors.ts'
import { type StarlarkToken, tokenName } from './tokens.ts'

/** Deeper nesting is refused: everything that goes through the tree calls itself for each level. */
const maxDepth = 200

export class TokenReader {
  readonly #tokens: readonly StarlarkToken[]
  #at = 0
  #depth = 0

  constructor(tokens: readonly StarlarkToken[]) {
    this.#tokens = tokens
  }

  get present(): StarlarkToken {
    return this.#tokens[this.#at] ?? { kind: 'end of file', text: '', line: 1, column: 1 }
  }

  get following(): StarlarkToken | undefined {
    return this.#tokens[this.#at + 1]
  }

  take(): StarlarkToken {
    const token = this.present
    if (this.#at < this.#tokens.length) this.#at++
    return token
  }

  is(...kinds: readonly string[]): boolean {
    return kinds.includes(this.present.kind)
  }

  /** Takes the token when it is of this kind. */
  has(kind: string): boolean {
    if (this.present.kind !== kind) return false
    this.take()
    return true
  }

  expect(kind: string): StarlarkToken {
    if (this.present.kind !== kind) throw this.unexpected(tokenName({ kind, text: '' }))
    return this.take()
  }

  identifier(): StarlarkToken {
    if (!this.is('identifier')) throw this.failure('not an identifier')
    return this.take()
  }

  unexpected(want: string): StarlarkError {
    return this.failure(`syntax error: got ${tokenName(this.present)}, want ${want}`)
  }

  failure(message: string, { line, column }: { line: number; column: number } = this.present): StarlarkError {
    return new StarlarkError(message, { line, column })
  }

  /** Runs what reads one level of nesting. Throws when that is one too many. */
  nested<T>(read: () => T): T {
    if (++this.#depth > maxDepth) throw this.failure('the script is nested too deeply')
    const result = read()
    this.#depth--
    return result
  }

  /** For chains, whose tree is as deep as they are long. */
  checkLength(length: number): void {
    if (length > maxDepth * 4)
      throw this.failure('the expression is too long; use a variable for a part of it')
  }
}
