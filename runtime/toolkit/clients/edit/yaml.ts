/**
 * Inserts or removes one member of a map in YAML text by splicing whole lines.
 *
 * Edits only maps in block style. A new member is inserted after the last member. `edit.ts` verifies the result.
 */
import { writeYaml } from '../../../../schemas/yaml/index.ts'
import { isAlias, isMap, isScalar, type Pair, type YAMLMap } from 'yaml'
import { yamlDocument } from '../document/document.ts'
import { lineEndOf, lineStart, nextLine, positionOf, refusedFile } from '../document/text.ts'
import { type TextChange, insertion, replacement } from './changes.ts'

/** Returns the changes that set `path` to `value`. Throws INVALID_CONFIG when the edit is not safe. */
export function putYaml(text: string, path: readonly string[], value: unknown, file: string): TextChange[] {
  const root = yamlDocument(text, file)?.contents
  if (!root)
    return [insertion(text.length, `${newLineBefore(text, text.length)}${block(text, path, value, '')}`)]
  if (!isMap(root)) throw refusedFile(file, 'must contain a map at the top level')
  const { map, rest, pair, indent } = follow(text, root, path, file)
  if (pair) {
    const { start, end } = linesOf(text, pair)
    return [replacement(text, start, end, block(text, path.slice(-1), value, columnOf(text, pair)))]
  }
  const last = map?.items.at(-1)
  const at = last ? linesOf(text, last).end : afterKey(text, root, path)
  return [
    insertion(
      at,
      `${newLineBefore(text, at)}${block(text, rest, value, last ? columnOf(text, last) : indent)}`,
    ),
  ]
}

/** Returns the changes that remove `path`. The list is empty when `path` does not exist. */
export function dropYaml(text: string, path: readonly string[], file: string): TextChange[] {
  const root = yamlDocument(text, file)?.contents
  if (!isMap(root)) return []
  const { pair } = follow(text, root, path, file)
  if (!pair) return []
  const { start, end } = linesOf(text, pair)
  return [replacement(text, start, end, '')]
}

interface PathMatch {
  /** The innermost map on the path. Undefined when the key of that map has no value yet. */
  readonly map: YAMLMap | undefined
  readonly rest: readonly string[]
  readonly pair: Pair | undefined
  /** Indentation for the members of an empty map. */
  readonly indent: string
}

function follow(text: string, root: YAMLMap, path: readonly string[], file: string): PathMatch {
  let map = root
  for (const [index, name] of path.entries()) {
    if (map.flow) {
      const { line } = positionOf(text, map.range?.[0] ?? 0)
      throw refusedFile(
        `${file}:${line}:`,
        'this map is in flow style, {…}; write it as an indented block and try again',
      )
    }
    const pair = map.items.find(({ key }) => isScalar(key) && key.value === name)
    if (!pair || index === path.length - 1) return { map, rest: path.slice(index), pair, indent: '' }
    const { value } = pair
    if (value === null || (isScalar(value) && value.value === null && value.source === '')) {
      return {
        map: undefined,
        rest: path.slice(index + 1),
        pair: undefined,
        indent: `${columnOf(text, pair)}  `,
      }
    }
    if (!isMap(value)) {
      const { line } = positionOf(text, offsetOf(pair))
      throw refusedFile(
        `${file}:${line}:`,
        `"${name}" must be a map${isAlias(value) ? ', not an alias' : ''}`,
      )
    }
    map = value
  }
  return { map, rest: [], pair: undefined, indent: '' }
}

/** Returns the offset of the line that follows a key without a value. */
function afterKey(text: string, root: YAMLMap, path: readonly string[]): number {
  const pair = root.items.find(({ key }) => isScalar(key) && key.value === path[0])
  return pair ? nextLine(text, offsetOf(pair)) : text.length
}

/** Returns the range from the key's line to the last line of the value. */
function linesOf(text: string, pair: Pair): { start: number; end: number } {
  const start = lineStart(text, offsetOf(pair))
  const end = endOf(pair)
  return { start, end: text[end - 1] === '\n' ? end : nextLine(text, end) }
}

function offsetOf({ key }: Pair): number {
  return isScalar(key) ? (key.range?.[0] ?? 0) : 0
}

/** Returns the offset where the value ends, excluding comments and blank lines below it. */
function endOf({ key, value }: Pair): number {
  if (isMap(value)) {
    const last = value.items.at(-1)
    if (!value.flow && last) return endOf(last)
  }
  const range = (value as { range?: readonly number[] | null } | null)?.range
  return range?.[1] ?? (isScalar(key) ? (key.range?.[1] ?? 0) : 0)
}

function columnOf(text: string, pair: Pair): string {
  const offset = offsetOf(pair)
  return ' '.repeat(offset - lineStart(text, offset))
}

function newLineBefore(text: string, at: number): string {
  return at === 0 || text[at - 1] === '\n' ? '' : lineEndOf(text)
}

function block(text: string, path: readonly string[], value: unknown, indent: string): string {
  const nested = path.reduceRight<unknown>((held, name) => ({ [name]: held }), value)
  const lines = writeYaml(nested).trimEnd().split('\n')
  const end = lineEndOf(text)
  return lines.map((line) => `${indent}${line}${end}`).join('')
}
