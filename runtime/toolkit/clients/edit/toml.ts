/**
 * Inserts one table into TOML text, or removes it with its sub-tables, by splicing whole lines.
 *
 * A new table is appended, so that the meaning of all other tables stays the same. Rejects a server map that is written
 * inline or with dotted keys, because a header would be invalid there. `edit.ts` verifies the result.
 */
import { stringify } from 'smol-toml'
import { lineEndOf, nextLine, positionOf, refusedFile } from '../document/text.ts'
import { type TextChange, insertion, replacement } from './changes.ts'
import { scanToml, type TomlStatement } from './toml-scan.ts'

/** Returns the changes that set the table `path` to `value`. Throws INVALID_CONFIG when the edit is not safe. */
export function putToml(
  text: string,
  path: readonly string[],
  value: Readonly<Record<string, unknown>>,
  file: string,
): TextChange[] {
  const statements = scanToml(text)
  refuseInline(text, statements, path, file)
  const block = render(text, path, value)
  const old = blockOf(text, statements, path, file)
  if (old) return [replacement(text, old.start, old.end, block)]
  const end = lineEndOf(text)
  const lead = text === '' ? '' : text.endsWith('\n') ? end : end + end
  return [insertion(text.length, lead + block)]
}

/** Returns the changes that remove the table `path`. The list is empty when `path` does not exist. */
export function dropToml(text: string, path: readonly string[], file: string): TextChange[] {
  const statements = scanToml(text)
  refuseInline(text, statements, path, file)
  const old = blockOf(text, statements, path, file)
  if (!old) return []
  // Also remove the blank line before the table, so that adding and then removing an entry restores the text.
  const blank = /\r?\n(?=$)/.exec(text.slice(0, old.start))
  const lonely = blank && (old.start === blank[0].length || text[old.start - blank[0].length - 1] === '\n')
  return [replacement(text, lonely ? old.start - blank[0].length : old.start, old.end, '')]
}

function render(text: string, path: readonly string[], value: Readonly<Record<string, unknown>>): string {
  const nested = path.reduceRight<unknown>((held, name) => ({ [name]: held }), value)
  return `${stringify(nested).trim()}\n`.replaceAll('\n', lineEndOf(text))
}

/** Returns the whole lines from the header to the last pair, including sub-tables. */
function blockOf(
  text: string,
  statements: readonly TomlStatement[],
  path: readonly string[],
  file: string,
): { start: number; end: number } | undefined {
  const first = statements.findIndex(
    (statement) => statement.kind !== 'pair' && startsWith(statement.path, path),
  )
  if (first < 0) return undefined
  let last = first
  let other = false
  for (const [index, statement] of statements.entries()) {
    if (index < first) continue
    if (statement.kind !== 'pair' && !startsWith(statement.path, path)) other = true
    else if (statement.kind !== 'pair' && other) {
      const { line } = positionOf(text, statement.start)
      throw refusedFile(
        `${file}:${line}:`,
        `[${statement.path.join('.')}] is separated from its parent table; move it below that table first`,
      )
    }
    if (!other) last = index
  }
  return { start: statements[first]?.start ?? 0, end: nextLine(text, statements[last]?.end ?? 0) }
}

function startsWith(path: readonly string[], prefix: readonly string[]): boolean {
  return prefix.every((name, index) => path[index] === name)
}

/** Throws when the server map or the entry is set without a table header. */
function refuseInline(
  text: string,
  statements: readonly TomlStatement[],
  path: readonly string[],
  file: string,
): void {
  // When a whole server map is removed, only its own pairs matter.
  const map = path.length > 1 ? path.slice(0, -1) : path
  let table: readonly string[] = []
  for (const statement of statements) {
    if (statement.kind !== 'pair') {
      table = statement.path
      continue
    }
    const full = [...table, ...statement.path]
    // Pairs inside an entry's table are valid.
    if (table.length >= path.length || !startsWith(map, full.slice(0, map.length))) continue
    const { line } = positionOf(text, statement.start)
    const name = map.join('.')
    throw refusedFile(
      `${file}:${line}:`,
      `${name} is written inline or with dotted keys; write its entries as tables, [${name}.NAME], and try again`,
    )
  }
}
