/**
 * Splits a template into text and actions, and actions into tokens. Applies trim markers and drops comments.
 * Source: Go text/template, "Text and spaces", and the lexical rules of its parser.
 */
import { literalToken } from './literals.ts'
import { TemplateError } from './tree.ts'

export interface TemplateToken {
  readonly kind:
    | 'dot'
    | 'field'
    | 'variable'
    | 'word'
    | 'string'
    | 'int'
    | 'float'
    | 'declare'
    | 'assign'
    | 'comma'
    | 'pipe'
    | 'open'
    | 'close'
  /**
   * Text of the token: the name of a field without its dot, a word, a variable with its `$`, or the value of a string.
   */
  readonly text: string
  readonly number?: bigint | number
  /** True when the token follows whitespace. */
  readonly apart: boolean
}

export type TemplatePiece = { readonly text: string } | { readonly action: readonly TemplateToken[] }

/** Returns the pieces of a template in order, omitting empty text and comments. Throws TemplateError. */
export function piecesOf(template: string): readonly TemplatePiece[] {
  const pieces: TemplatePiece[] = []
  let at = 0
  let trim = false
  while (at < template.length) {
    const open = template.indexOf('{{', at)
    let text = template.slice(at, open < 0 ? undefined : open)
    if (trim) text = text.replace(/^[ \t\r\n]+/, '')
    const marked = open >= 0 && template[open + 2] === '-' && isSpace(template[open + 3])
    if (marked) text = trimmedEnd(text)
    if (text !== '') pieces.push({ text })
    if (open < 0) break
    const inner = open + (marked ? 4 : 2)
    const read = template.startsWith('/*', inner) ? comment(template, inner) : action(template, inner)
    if (read.tokens) pieces.push({ action: read.tokens })
    at = read.end
    trim = read.trim
  }
  return pieces
}

/** Removes trailing whitespace. Uses a loop, because a pattern would rescan every run of blanks. */
function trimmedEnd(text: string): string {
  let end = text.length
  while (end > 0 && isSpace(text[end - 1])) end -= 1
  return text.slice(0, end)
}

function isSpace(char: string | undefined): boolean {
  return char === ' ' || char === '\t' || char === '\r' || char === '\n'
}

interface Read {
  readonly tokens?: readonly TemplateToken[]
  readonly end: number
  /** True when a trim marker drops the following whitespace. */
  readonly trim: boolean
}

function comment(template: string, start: number): Read {
  const end = template.indexOf('*/', start)
  if (end < 0) throw new TemplateError('a comment is not closed')
  const close = closing(template, end + 2)
  if (!close) throw new TemplateError('a comment must be closed by */}} or */ -}}')
  return close
}

/** Reads the end of an action at this position. Returns undefined for any other text. */
function closing(template: string, at: number): Read | undefined {
  if (template.startsWith('}}', at)) return { end: at + 2, trim: false }
  if (isSpace(template[at]) && template.startsWith('-}}', at + 1)) return { end: at + 4, trim: true }
  return undefined
}

const name = /[\p{L}\p{Nd}_]+/uy

function action(template: string, start: number): Read {
  const tokens: TemplateToken[] = []
  let depth = 0
  let at = start
  let apart = false
  for (;;) {
    const close = closing(template, at)
    if (close && depth === 0) return { ...close, tokens }
    if (close) throw new TemplateError('unclosed parenthesis')
    const char = template[at]
    if (char === undefined) throw new TemplateError('an action is not closed')
    if (isSpace(char)) {
      at += 1
      apart = true
      continue
    }
    const { token, end } = tokenAt(template, at, apart)
    if (token.kind === 'open') depth += 1
    if (token.kind === 'close' && --depth < 0) throw new TemplateError('unexpected closing parenthesis')
    tokens.push(token)
    at = end
    apart = false
  }
}

const marks: Readonly<Record<string, TemplateToken['kind']>> = {
  '(': 'open',
  ')': 'close',
  '|': 'pipe',
  ',': 'comma',
  '=': 'assign',
}

function tokenAt(template: string, at: number, apart: boolean): { token: TemplateToken; end: number } {
  const char = template.charAt(at)
  const mark = marks[char]
  if (mark !== undefined) return { token: { kind: mark, text: char, apart }, end: at + 1 }
  if (char === ':' && template[at + 1] === '=') {
    return { token: { kind: 'declare', text: ':=', apart }, end: at + 2 }
  }
  const literal = literalToken(template, at)
  if (literal) return { token: { ...literal.token, apart }, end: literal.end }
  const isVariable = char === '$'
  const isField = char === '.'
  const text = nameAt(template, isVariable || isField ? at + 1 : at)
  const end = at + text.length + (isVariable || isField ? 1 : 0)
  if (end === at) throw unexpected(template, at)
  if (!endsWord(template, end)) throw unexpected(template, end)
  if (isVariable) return { token: { kind: 'variable', text: `$${text}`, apart }, end }
  if (isField) return { token: { kind: text === '' ? 'dot' : 'field', text, apart }, end }
  return { token: { kind: 'word', text, apart }, end }
}

function nameAt(template: string, at: number): string {
  name.lastIndex = at
  return name.exec(template)?.[0] ?? ''
}

/** True at the end of the template, or when the next character cannot be part of a name. */
function endsWord(template: string, at: number): boolean {
  const char = template[at]
  return char === undefined || isSpace(char) || '.,|:()'.includes(char) || template.startsWith('}}', at)
}

function unexpected(template: string, at: number): TemplateError {
  const char = String.fromCodePoint(template.codePointAt(at) ?? 0xfffd)
  const hint = char === '-' ? '; write (index .a "b-c") for a name with a hyphen' : ''
  return new TemplateError(`the character ${JSON.stringify(char)} is not allowed in an action${hint}`)
}
