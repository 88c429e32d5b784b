/**
 * Parses JSON with comments and trailing commas, which most clients accept, to a tree with offsets and to plain values.
 *
 * Also accepts comments in the files of strict clients, because no edit adds or removes comments. An empty file does
 * not have a tree.
 */
import { createScanner, type Node, type ParseError, parseTree } from 'jsonc-parser'
import { exactInteger } from '../../../../schemas/index.ts'
import { positionOf, refusedFile } from './text.ts'

const maxDepth = 200

/** The scanner's token kinds. The scanner's own names are ambient constants, which do not exist at run time. */
export const token = {
  openBrace: 1,
  closeBrace: 2,
  openBracket: 3,
  closeBracket: 4,
  comma: 5,
  colon: 6,
  lineComment: 12,
  blockComment: 13,
  lineBreak: 14,
  blank: 15,
  end: 17,
} as const

/** Error messages, keyed by the parser's error code. */
const messages: Readonly<Record<number, string>> = {
  1: 'a value is expected here',
  2: 'this is not a number',
  3: 'a quoted name is expected here',
  4: 'a value is expected here',
  5: 'a colon is expected here',
  6: 'a comma is expected here',
  7: 'a closing brace is expected here',
  8: 'a closing bracket is expected here',
  9: 'the document should end here',
  10: 'a comment is not allowed here',
  11: 'the comment is not closed',
  12: 'the string is not closed',
  13: 'the number is incomplete',
  14: 'the Unicode escape is invalid',
  15: 'the escape is invalid',
  16: 'this character is not allowed in a string',
}

/** Parses JSON text into a tree; returns undefined for text without values. Throws INVALID_CONFIG. */
export function jsonTree(text: string, file: string): Node | undefined {
  if (isEmptyJson(text)) return undefined
  checkDepth(text, file)
  const errors: ParseError[] = []
  const root = parseTree(text, errors, { allowTrailingComma: true })
  const [first] = errors
  if (first) {
    const { line, column } = positionOf(text, first.offset)
    const why = messages[first.error] ?? 'the text is not JSON'
    throw refusedFile(`${file}:${line}:${column}:`, `not valid JSON: ${why}`)
  }
  return root
}

/** True when the text contains only whitespace and comments. */
function isEmptyJson(text: string): boolean {
  const kind: number = createScanner(text, true).scan()
  return kind === token.end
}

function checkDepth(text: string, file: string): void {
  const scanner = createScanner(text, true)
  let depth = 0
  for (let kind: number = scanner.scan(); kind !== token.end; kind = scanner.scan()) {
    if (kind === token.openBrace || kind === token.openBracket) depth++
    else if (kind === token.closeBrace || kind === token.closeBracket) depth--
    if (depth > maxDepth) throw refusedFile(file, `is nested deeper than ${maxDepth} levels`)
  }
}

/**
 * Returns the plain value of a node, or raw JSON for an integer that a double would round. If several members have the
 * same name, the last one takes precedence, as in every JSON parser.
 */
export function jsonValue(node: Node | undefined, text: string): unknown {
  if (node === undefined) return undefined
  const { type, offset, length, children = [] } = node
  const value: unknown = node.value
  if (type === 'array') return children.map((item) => jsonValue(item, text))
  if (typeof value === 'number') return exactInteger(value, text.slice(offset, offset + length))
  if (type !== 'object') return value
  const entries = children.map(({ children: [name, member] = [] }) => [
    String(name?.value),
    jsonValue(member, text),
  ])
  // Unlike an assignment, this makes `__proto__` an ordinary member.
  return Object.fromEntries(entries)
}

/** Returns the members of an object node with this name. A file may contain the same name more than once. */
export function membersOf(node: Node, name: string): readonly Node[] {
  return (node.children ?? []).filter(({ children }) => children?.[0]?.value === name)
}
