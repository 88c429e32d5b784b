/**
 * Splits a script's text into tokens, including indentation.
 *
 * The first statement may be indented; its column becomes the left margin of the script. Inside brackets, line breaks
 * and indentation are ignored. Throws StarlarkError, which contains the error's position.
 * Source: Starlark specification, "Lexical elements".
 */
import { StarlarkError } from '../errors.ts'
import { LiteralError, readInt, unescape } from './literals.ts'
import { normal } from '../values/numbers.ts'
import { decode, encode } from '../values/text.ts'
import { keywordTable, punctuationMarks, reserved, type StarlarkToken } from './tokens.ts'

const namePattern = /[A-Za-z_\x80-\xff][A-Za-z0-9_\x80-\xff]*/y
const numberText = /0[xXoObB][0-9a-zA-Z]*|\d+(?:\.\d*)?(?:[eE][+-]?\d*)?|\.\d+(?:[eE][+-]?\d*)?/y
const stringStart = /(r|b|rb|br)?("""|'''|"|')/y
const letters = /^[\p{L}_][\p{L}\p{N}_]*$/u
const tab = 8

export class Scanner {
  readonly #text: string
  readonly #tokens: StarlarkToken[] = []
  readonly #indents: number[] = []
  readonly #brackets: string[] = []
  #at = 0
  #line = 1
  /** Offset of the current line, and the last computed column. */
  #lineStart = 0
  #known = { at: 0, column: 1 }

  constructor(source: string) {
    this.#text = encode(source.replaceAll(/\r\n?/g, '\n'))
  }

  scan(): StarlarkToken[] {
    this.#indent()
    while (this.#at < this.#text.length) this.#next()
    if (this.#brackets.length === 0 && this.#tokens.length > 0 && this.#tokens.at(-1)?.kind !== 'newline')
      this.#push('newline')
    for (let i = 1; i < this.#indents.length; i++) this.#push('outdent')
    this.#push('end of file')
    return this.#tokens
  }

  #column(at: number): number {
    if (this.#known.at > at || this.#known.at < this.#lineStart)
      this.#known = { at: this.#lineStart, column: 1 }
    let { column } = this.#known
    for (let i = this.#known.at; i < at; i++) if ((this.#text.charCodeAt(i) & 0xc0) !== 0x80) column++
    this.#known = { at, column }
    return column
  }

  #push(kind: string, text = '', at = this.#at, number?: number | bigint): void {
    const place = { line: this.#line, column: this.#column(at) }
    this.#tokens.push({ kind, text, ...place, ...(number === undefined ? {} : { number }) })
  }

  #failure(message: string, at = this.#at): StarlarkError {
    return new StarlarkError(message, {
      line: this.#line,
      column: this.#column(Math.max(at, this.#lineStart)),
    })
  }

  #newline(): void {
    this.#at++
    this.#line++
    this.#lineStart = this.#at
  }

  #match(pattern: RegExp): RegExpExecArray | null {
    pattern.lastIndex = this.#at
    return pattern.exec(this.#text)
  }

  /** Compares the indentation of the next non-empty line with that of the previous lines. */
  #indent(): void {
    let column = 0
    for (;;) {
      const char = this.#text[this.#at]
      if (char === ' ') column++
      else if (char === '\t') column += tab - (column % tab)
      else if (char === '\n') {
        this.#newline()
        column = 0
        continue
      } else if (char === '#') {
        this.#comment()
        continue
      } else break
      this.#at++
    }
    if (this.#at >= this.#text.length) return
    const present = this.#indents.at(-1)
    if (present === undefined) this.#indents.push(column)
    else if (column > present) {
      this.#indents.push(column)
      this.#push('indent')
    } else this.#outdent(column)
  }

  #outdent(column: number): void {
    while (column < (this.#indents.at(-1) ?? 0)) {
      this.#indents.pop()
      if (this.#indents.length === 0 || column > (this.#indents.at(-1) ?? 0))
        throw this.#failure('unindent does not match any outer indentation level')
      this.#push('outdent')
    }
  }

  #comment(): void {
    const end = this.#text.indexOf('\n', this.#at)
    this.#at = end < 0 ? this.#text.length : end
  }

  #next(): void {
    const char = this.#text[this.#at] ?? ''
    if (char === ' ' || char === '\t') this.#at++
    else if (char === '\n') this.#endLine()
    else if (char === '#') this.#comment()
    else if (char === '\\' && this.#text[this.#at + 1] === '\n') {
      this.#at++
      this.#newline()
    } else this.#token(char)
  }

  #endLine(): void {
    if (this.#brackets.length > 0) {
      this.#newline()
      return
    }
    this.#push('newline')
    this.#newline()
    this.#indent()
  }

  #token(char: string): void {
    const opening = this.#match(stringStart)
    if (opening) this.#string(opening)
    else if (/[A-Za-z_\x80-\xff]/.test(char)) this.#name()
    else if (/\d/.test(char) || (char === '.' && /\d/.test(this.#text[this.#at + 1] ?? ''))) this.#number()
    else this.#punctuation()
  }

  #name(): void {
    const name = this.#match(namePattern)?.[0] ?? ''
    const isReserved = Object.hasOwn(reserved, name)
    if (isReserved) {
      const hint = reserved[name]
      throw this.#failure(`${name} is not part of Starlark${hint === '' ? '' : `: ${hint}`}`)
    }
    if (!letters.test(decode(name))) {
      const bad = Array.from(decode(name)).find((letter) => !/[\p{L}\p{N}_]/u.test(letter)) ?? name
      throw this.#failure(`unexpected input character ${JSON.stringify(bad)}`)
    }
    this.#push(keywordTable.has(name) ? name : 'identifier', name)
    this.#at += name.length
  }

  #number(): void {
    const text = this.#match(numberText)?.[0] ?? ''
    const isInt = !/[.eE]/.test(text) || /^0[xX]/.test(text)
    if (isInt) {
      const value = readInt(text)
      if (value === undefined) {
        const isOctal = /^0\d+$/.test(text)
        throw this.#failure(
          isOctal ? `obsolete form of octal literal; use 0o${text.slice(1)}` : `invalid int literal ${text}`,
        )
      }
      this.#push('int', text, this.#at, normal(value))
    } else {
      const value = Number(text)
      if (/[eE][+-]?$/.test(text)) throw this.#failure('invalid float literal')
      if (!Number.isFinite(value)) throw this.#failure('floating-point literal too large')
      this.#push('float', text, this.#at, value)
    }
    this.#at += text.length
  }

  #string([whole, prefix = '', quote = '"']: RegExpExecArray): void {
    const start = this.#at
    const place = { line: this.#line, column: this.#column(start) }
    const inner = start + whole.length
    const end = this.#stringEnd(inner, quote)
    const raw = this.#text.slice(inner, end)
    const isBytes = prefix.includes('b')
    let text: string
    try {
      text = prefix.includes('r') ? raw : unescape(raw, isBytes)
    } catch (error) {
      if (!(error instanceof LiteralError)) throw error
      throw this.#failure(error.message, start)
    }
    this.#tokens.push({ kind: isBytes ? 'bytes' : 'string', text, ...place })
    for (let at = raw.indexOf('\n'); at >= 0; at = raw.indexOf('\n', at + 1)) {
      this.#line++
      this.#lineStart = inner + at + 1
    }
    this.#at = end + quote.length
  }

  /** Returns the position of the closing quote. */
  #stringEnd(inner: number, quote: string): number {
    const stops = quote.length === 3 ? /\\[^]|"""|'''/g : /\\[^]|["'\n]/g
    stops.lastIndex = inner
    for (let found = stops.exec(this.#text); found; found = stops.exec(this.#text)) {
      if (found[0] === quote) return found.index
      if (found[0] === '\n') throw this.#failure('unexpected newline in string')
    }
    throw this.#failure('unexpected end of file in string')
  }

  #punctuation(): void {
    const found = punctuationMarks.find((text) => this.#text.startsWith(text, this.#at))
    if (found === undefined) {
      const char = this.#text[this.#at] ?? ''
      const hint = char === '!' ? ': use not' : ''
      throw this.#failure(`unexpected input character ${JSON.stringify(char)}${hint}`)
    }
    if ('([{'.includes(found)) this.#brackets.push(found)
    else if (')]}'.includes(found) && this.#brackets.pop() === undefined)
      throw this.#failure(`unexpected '${found}'`)
    this.#push(found)
    this.#at += found.length
  }
}
