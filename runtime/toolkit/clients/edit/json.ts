/**
 * Inserts or removes one member in JSON text with comments by splicing.
 *
 * A new member is inserted after the last value, its comma and the comments on its line. The new member follows the
 * style of its neighbors (indent, number of lines, trailing comma). Removal keeps every comment. `edit.ts` verifies
 * the result.
 */
import { createScanner, type Node } from 'jsonc-parser'
import { jsonTree, membersOf, token } from '../document/json.ts'
import { indentAt, lineEndOf, lineStart, positionOf, refusedFile } from '../document/text.ts'
import { type TextChange, insertion, replacement } from './changes.ts'

/** Returns the changes that set `path` to `value`. Throws INVALID_CONFIG when the path cannot be followed safely. */
export function putJson(text: string, path: readonly string[], value: unknown, file: string): TextChange[] {
  const root = jsonTree(text, file)
  if (!root) return [insertion(text.length, newDocument(text, path, value))]
  const { parent, rest, member } = follow(text, root, path, file)
  if (member) {
    const [key, old] = member.children ?? []
    if (!key || !old) throw refusedFile(file, 'has a member without a value')
    const shown = render(text, value, indentAt(text, key.offset), isOneLine(text, parent) ? 'line' : 'block')
    return [replacement(text, old.offset, old.offset + old.length, shown)]
  }
  const [key = '', ...inner] = rest
  const nested = inner.reduceRight<unknown>((held, name) => ({ [name]: held }), value)
  return addMember(text, parent, key, nested)
}

/** Returns the changes that remove `path`. The list is empty when `path` does not exist. */
export function dropJson(text: string, path: readonly string[], file: string): TextChange[] {
  const root = jsonTree(text, file)
  if (!root) return []
  const { parent, member } = follow(text, root, path, file)
  return member ? removeMember(text, parent, member) : []
}

interface PathMatch {
  /** The innermost existing object on the path. */
  readonly parent: Node
  /** Keys below the parent. Contains a single key when only the last key is missing. */
  readonly rest: readonly string[]
  /** The member at the end of the path, if it exists. */
  readonly member: Node | undefined
}

function follow(text: string, root: Node, path: readonly string[], file: string): PathMatch {
  let parent = root
  for (const [index, name] of path.entries()) {
    if (parent.type !== 'object') {
      const { line } = positionOf(text, parent.offset)
      const what = index === 0 ? 'the document' : `"${path[index - 1]}"`
      throw refusedFile(`${file}:${line}:`, `${what} must be an object, but it is ${article(parent.type)}`)
    }
    const [member, twin] = membersOf(parent, name)
    if (twin) {
      const { line } = positionOf(text, twin.offset)
      throw refusedFile(`${file}:${line}:`, `"${name}" occurs twice and is ambiguous; remove one of them`)
    }
    const value = member?.children?.[1]
    if (!member || !value) return { parent, rest: path.slice(index), member: undefined }
    if (index === path.length - 1) return { parent, rest: [name], member }
    parent = value
  }
  return { parent, rest: [], member: undefined }
}

function article(type: string): string {
  return /^[aeiou]/.test(type) ? `an ${type}` : `a ${type}`
}

function newDocument(text: string, path: readonly string[], value: unknown): string {
  const end = lineEndOf(text)
  const nested = path.reduceRight<unknown>((held, name) => ({ [name]: held }), value)
  const lead = text === '' || text.endsWith('\n') ? '' : end
  return `${lead}${JSON.stringify(nested, undefined, 2).replaceAll('\n', end)}${end}`
}

function addMember(text: string, parent: Node, key: string, value: unknown): TextChange[] {
  const members = parent.children ?? []
  const last = members.at(-1)
  if (!last) return addFirst(text, parent, key, value)
  const tail = tailOf(text, last.offset + last.length, parent)
  const comma = tail.comma === undefined ? [insertion(last.offset + last.length, ',')] : []
  const habit = tail.comma === undefined ? '' : ','
  if (isOneLine(text, parent)) {
    const gap = isSpaced(text, parent) ? ' ' : ''
    const member = `${JSON.stringify(key)}:${gap}${render(text, value, '', 'line', gap)}`
    return mergeInsertions([...comma, insertion(tail.end, `${gap}${member}${habit}`)])
  }
  const indent = indentAt(
    text,
    members.find((member) => startsLine(text, member.offset))?.offset ?? last.offset,
  )
  const member = `${JSON.stringify(key)}: ${render(text, value, indent, 'block')}`
  return mergeInsertions([...comma, insertion(tail.end, `${lineEndOf(text)}${indent}${member}${habit}`)])
}

/** Merges two insertions at the same offset. */
function mergeInsertions(changes: readonly TextChange[]): TextChange[] {
  const [first, second] = changes
  if (!first || !second || first.offset !== second.offset) return [...changes]
  return [insertion(first.offset, first.inserted + second.inserted)]
}

function addFirst(text: string, parent: Node, key: string, value: unknown): TextChange[] {
  const open = parent.offset + 1
  const close = parent.offset + parent.length - 1
  if (!text.trimEnd().includes('\n') && text.trim() !== '{}') {
    const gap = isSpaced(text, parent) ? ' ' : ''
    return [insertion(open, `${JSON.stringify(key)}:${gap}${render(text, value, '', 'line', gap)}`)]
  }
  const end = lineEndOf(text)
  const outer = indentAt(text, parent.offset)
  const indent = outer + unitOf(text)
  const member = `${end}${indent}${JSON.stringify(key)}: ${render(text, value, indent, 'block')}`
  const comments = tailOf(text, open, parent).lastComment
  const at = comments ?? open
  const closesOnNewLine = text.slice(at, close).includes('\n')
  return [insertion(at, closesOnNewLine ? member : `${member}${end}${outer}`)]
}

interface Tail {
  /** Offset of the comma after the value. */
  readonly comma: number | undefined
  /** Offset after the comma and the comments on the value's line. */
  readonly end: number
  /** End of the last comment before the closing brace. */
  readonly lastComment: number | undefined
}

/** Describes the text between the end of a value and either the next member or the end of the object. */
function tailOf(text: string, from: number, parent: Node): Tail {
  const close = parent.offset + parent.length - 1
  const scanner = createScanner(text, false)
  scanner.setPosition(from)
  let comma: number | undefined
  let end = from
  let lastComment: number | undefined
  let sameLine = true
  for (let kind: number = scanner.scan(); scanner.getTokenOffset() < close; kind = scanner.scan()) {
    const tokenEnd = scanner.getTokenOffset() + scanner.getTokenLength()
    if (kind === token.lineBreak) sameLine = false
    else if (kind === token.comma) {
      comma = scanner.getTokenOffset()
      end = tokenEnd
      sameLine = true
    } else if (kind === token.lineComment || kind === token.blockComment) {
      lastComment = tokenEnd
      if (sameLine) end = tokenEnd
    } else if (kind !== token.blank) break
  }
  return { comma, end, lastComment }
}

function removeMember(text: string, parent: Node, member: Node): TextChange[] {
  const members = parent.children ?? []
  const index = members.indexOf(member)
  const previous = members[index - 1]
  const own = tailOf(text, member.offset + member.length, parent)
  const end = own.comma === undefined ? member.offset + member.length : own.comma + 1
  const changes = [removal(text, member.offset, end)]
  if (own.comma !== undefined || !previous) return changes
  const { comma } = tailOf(text, previous.offset + previous.length, parent)
  if (comma === undefined) return changes
  const [first] = changes
  // On a single line, the comma and the member can be adjacent.
  if (first && first.offset <= comma + 1)
    return [replacement(text, comma, first.offset + first.removed.length, '')]
  return [replacement(text, comma, comma + 1, ''), ...changes]
}

/**
 * If the member's lines contain nothing else, removes the lines. Otherwise, removes the member and the whitespace after
 * it.
 */
function removal(text: string, start: number, end: number): TextChange {
  const restOfLine = /^[ \t]*(?=\r?\n|$)/.exec(text.slice(end))
  if (startsLine(text, start) && restOfLine) {
    const newline = lineStart(text, start) - 1
    const from = newline > 0 && text[newline - 1] === '\r' ? newline - 1 : newline
    if (from >= 0) return replacement(text, from, end + restOfLine[0].length, '')
  }
  const blanks = /^[ \t]*/.exec(text.slice(end))?.[0] ?? ''
  const closes = /^[}\]]/.test(text.slice(end + blanks.length))
  if (!closes) return replacement(text, start, end + blanks.length, '')
  let from = start
  while (text[from - 1] === ' ' || text[from - 1] === '\t') from--
  return replacement(text, from, end, '')
}

function startsLine(text: string, offset: number): boolean {
  return text.slice(lineStart(text, offset), offset).trim() === ''
}

/** True when all members are on the same line as the opening brace. */
function isOneLine(text: string, { offset, length }: Node): boolean {
  return !text.slice(offset, offset + length).includes('\n')
}

/** True when a space follows each colon. */
function isSpaced(text: string, node: Node): boolean {
  const colon = node.children?.[0]?.colonOffset ?? node.parent?.colonOffset
  return colon === undefined ? !/^[^\n]*":["{[\d]/.test(text) : text[colon + 1] === ' '
}

/** Returns the indent of one level, taken from the first indented name. Default: two spaces. */
function unitOf(text: string): string {
  return /\n([ \t]+)"/.exec(text)?.[1] ?? '  '
}

function render(text: string, value: unknown, indent: string, style: 'line' | 'block', gap = ' '): string {
  if (style === 'block') {
    return JSON.stringify(value, undefined, unitOf(text)).replaceAll('\n', `${lineEndOf(text)}${indent}`)
  }
  if (Array.isArray(value))
    return `[${value.map((item) => render(text, item, '', 'line', gap)).join(`,${gap}`)}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const members = Object.entries(value).map(
    ([key, item]) => `${JSON.stringify(key)}:${gap}${render(text, item, '', 'line', gap)}`,
  )
  return `{${members.join(`,${gap}`)}}`
}
