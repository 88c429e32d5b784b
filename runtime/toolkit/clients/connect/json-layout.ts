/** Breaks long JSON lines for a diff, because a client may write its whole file on one line. */
import { createScanner } from 'jsonc-parser'
import { token } from '../document/json.ts'

interface Token {
  readonly kind: number
  readonly offset: number
}

interface Line {
  indent: string
  /** The tokens of the line, without white space. */
  readonly tokens: Token[]
}

/**
 * Returns the offsets at which lines with several members must be broken, with the text to insert at each offset. Lists
 * stay on one line.
 */
export function jsonLineBreaks(text: string): ReadonlyMap<number, string> {
  const breaks = new Map<number, string>()
  for (const line of linesOf(text))
    if (line.tokens.filter(({ kind }) => kind === token.colon).length > 1) breakLine(line, breaks)
  return breaks
}

function linesOf(text: string): readonly Line[] {
  const scanner = createScanner(text, false)
  let line: Line = { indent: '', tokens: [] }
  const lines = [line]
  for (let kind: number = scanner.scan(); kind !== token.end; kind = scanner.scan()) {
    if (kind === token.lineBreak) lines.push((line = { indent: '', tokens: [] }))
    else if (kind !== token.blank) line.tokens.push({ kind, offset: scanner.getTokenOffset() })
    else if (line.tokens.length === 0) line.indent = scanner.getTokenValue()
  }
  return lines
}

function breakLine({ indent, tokens }: Line, breaks: Map<number, string>): void {
  let depth = 0
  let lists = 0
  for (const [index, { kind, offset }] of tokens.entries()) {
    const previous = tokens[index - 1]?.kind
    if (kind === token.closeBrace) depth = Math.max(0, depth - 1)
    const isEnd = kind === token.closeBrace && previous !== token.openBrace
    const isStart = kind !== token.closeBrace && previous === token.openBrace
    if (index > 0 && lists === 0 && (isEnd || isStart || previous === token.comma))
      breaks.set(offset, `\n${indent}${'  '.repeat(depth)}`)
    if (kind === token.openBrace) depth++
    else if (kind === token.openBracket) lists++
    else if (kind === token.closeBracket) lists = Math.max(0, lists - 1)
  }
}
