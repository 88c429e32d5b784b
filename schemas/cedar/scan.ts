/**
 * Checks Cedar policy texts against limits in linear time, before the engine parses them.
 *
 * The engine recurses over brackets while it parses, and over operators while it evaluates. After a stack overflow, the
 * engine instance is unusable. The limits are half of the measured capacity (engine 4.13, V8's standard stack: 76
 * brackets, 100 levels of operators). Each invalid token costs the engine about ten microseconds, so the number of
 * tokens is limited.
 *
 * The scan estimates the depth of an expression from precedence; the estimate is never too low. The scan checks nothing
 * else, so a text that passes may still be invalid.
 * Source: Cedar policy grammar.
 */

/** Maximum length of one text, in characters. */
const maxText = 64 * 1024
const maxTokens = 8192
/** Maximum nesting of `(`, `[` and `{`. */
const maxBrackets = 32
/** Maximum number of levels of operators, accessors and brackets in one expression. */
const maxDepth = 64
/** Maximum pattern length for `like`, in characters; matching takes time proportional to pattern × text. */
const maxPattern = 256

/**
 * Matches comments, strings and tokens in a text. As in the engine, a carriage return or a line feed ends a comment.
 */
const lexemes = /\/\/[^\n\r]*|"(?:\\[^\n]|[^"\\])*("?)|[A-Za-z_0-9]+|\|\||&&|\S/g

export const notCedar = 'is not a Cedar policy'

/** Returns a message that names the exceeded limit and its location, or undefined. */
export function textViolation(text: string): string | undefined {
  if (text.length > maxText) return `is longer than ${maxText} characters`
  const scan = new Scan()
  for (const match of text.matchAll(lexemes)) {
    const violation = scan.take(match[0], match[1])
    if (violation !== undefined) return `${violation} (character ${match.index + 1})`
  }
  return scan.end()
}

/** Tracks how deeply operators are nested in one expression at one level of brackets. */
class Expression {
  #ifs = 0
  #ors = 0
  readonly #ands = new Run()
  readonly #sums = new Run()
  readonly #products = new Run()
  readonly #accessors = new Run()
  #comparison = 0
  /** Levels for signs. One level is enough, because the engine accepts at most four consecutive signs. */
  #sign = 0
  /** Maximum nesting depth of the brackets inside the expression. */
  inner = 0

  get depth(): number {
    const chains = this.#ands.max + this.#sums.max + this.#products.max + this.#accessors.max
    return this.#ifs + this.#ors + chains + this.#comparison + this.#sign + this.inner
  }

  operator(token: string): void {
    switch (token) {
      case 'if':
        this.#ifs += 1
        break
      case '||':
        this.#ors += 1
        break
      // The engine joins a policy's conditions as if they were operands of &&.
      case 'when':
      case 'unless':
      case '&&':
        this.#ands.more()
        break
      case '+':
      case '-':
        this.#sums.more()
        break
      case '*':
        this.#products.more()
        break
      case '!':
        this.#sign = 1
        break
      default:
    }
    const level = levels.get(token)
    if (level === undefined) return
    if (level === 3) this.#comparison = 1
    if (level < 2) this.#ands.restart()
    if (level < 4) this.#sums.restart()
    if (level < 5) this.#products.restart()
    this.#accessors.restart()
  }

  /** Counts `.name`, `[…]` or `(…)` after an operand. */
  accessor(): void {
    this.#accessors.more()
  }
}

/** Precedence of operators. An operator resets the depth of all levels with higher precedence. */
const levels: ReadonlyMap<string, number> = new Map(
  [
    ['if', 'then', 'else'],
    ['||'],
    ['&&', 'when', 'unless'],
    ['=', '<', '>', 'in', 'has', 'like', 'is'],
    ['+', '-'],
    ['*'],
  ].flatMap((tokens, level) => tokens.map((token) => [token, level] as const)),
)

/** Counts consecutive operators. */
class Run {
  #now = 0
  max = 0

  more(): void {
    this.#now += 1
    this.max = Math.max(this.max, this.#now)
  }

  restart(): void {
    this.#now = 0
  }
}

const closers: ReadonlyMap<string, string> = new Map([
  ['(', ')'],
  ['[', ']'],
  ['{', '}'],
])

interface Frame {
  readonly closer: string
  /** Maximum depth of the expressions before the current expression. */
  deepest: number
  expression: Expression
}

class Scan {
  readonly #frames: Frame[] = []
  #frame: Frame = { closer: '', deepest: 0, expression: new Expression() }
  #tokens = 0
  #previous = ''

  /** Reads the next lexeme; `quote` is the closing quote of a string. Returns an error message, or undefined. */
  take(lexeme: string, quote: string | undefined): string | undefined {
    if (lexeme.startsWith('//')) return undefined
    if (++this.#tokens > maxTokens) return `contains more than ${maxTokens} tokens; split the text`
    const previous = this.#previous
    this.#previous = lexeme
    if (lexeme.startsWith('"')) {
      if (quote === '') return `${notCedar}: contains a string that is not closed`
      if (previous === 'like' && lexeme.length > maxPattern + 2)
        return `compares with a pattern longer than ${maxPattern} characters`
      return undefined
    }
    const closer = closers.get(lexeme)
    if (closer !== undefined) return this.#open(closer, isOperand(previous))
    if (lexeme === ')' || lexeme === ']' || lexeme === '}') return this.#close(lexeme)
    if (lexeme === ',' || lexeme === ';') this.#next()
    else if (lexeme === '.') this.#frame.expression.accessor()
    else this.#frame.expression.operator(lexeme)
    return this.#tooDeep()
  }

  end(): string | undefined {
    return this.#frames.length > 0 ? `${notCedar}: is missing ${this.#frame.closer} at the end` : undefined
  }

  #open(closer: string, accessor: boolean): string | undefined {
    if (accessor) this.#frame.expression.accessor()
    this.#frames.push(this.#frame)
    this.#frame = { closer, deepest: 0, expression: new Expression() }
    return this.#frames.length > maxBrackets
      ? `nests brackets more than ${maxBrackets} levels deep`
      : undefined
  }

  #close(lexeme: string): string | undefined {
    const outer = this.#frames.at(-1)
    if (!outer || lexeme !== this.#frame.closer)
      return `${notCedar}: contains ${lexeme} without a matching bracket`
    const { deepest, expression } = this.#frame
    outer.expression.inner = Math.max(outer.expression.inner, deepest + 1, expression.depth + 1)
    this.#frames.pop()
    this.#frame = outer
    return this.#tooDeep()
  }

  #next(): void {
    this.#frame.deepest = Math.max(this.#frame.deepest, this.#frame.expression.depth)
    this.#frame.expression = new Expression()
  }

  #tooDeep(): string | undefined {
    if (this.#frame.expression.depth <= maxDepth) return undefined
    return `nests operators more than ${maxDepth} levels deep; use sets instead of long chains, or several policies`
  }
}

/** True when a bracket after the token belongs to it: a call or an index. */
function isOperand(token: string): boolean {
  return /^[\w")\]}]/.test(token) && !/^(if|then|else|in|has|like|is|when|unless)$/.test(token)
}
