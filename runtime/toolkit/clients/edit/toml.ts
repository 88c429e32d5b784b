/**
 * Puts one table into a TOML text, or takes it out with its sub-tables, by splicing whole lines.
 *
 * A new table stands at the end, so that no other table changes its meaning. A map of servers that is written inline, or
 * as dotted keys, is refused: a header would then be wrong, and rewriting it would lose its form.
 * Does not check the outcome: `edit.ts` parses it again.
 */
import { stringify } from 'smol-toml'
import { lineEndOf, nextLine, positionOf, refusedFile } from '../document/text.ts'
import { type TextChange, insertion, replacement } from './changes.ts'
import { scanToml, type TomlStatement } from './toml-scan.ts'

/** The changes that set the table `path` to `value`. Throws INVALID_CONFIG when that cannot be done safely. */
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

/** The changes that remove the table `path`; none when it is not there. */
export function dropToml(text: string, path: readonly string[], file: string): TextChange[] {
  const statements = scanToml(text)
  refuseInline(text, statements, path, file)
  const old = blockOf(text, statements, path, file)
  if (!old) return []
  // The blank line before it goes as well, so that adding and removing leaves nothing behind.
  const blank = /\r?\n(?=$)/.exec(text.slice(0, old.start))
  const lonely = blank && (old.start === blank[0].length || text[old.start - blank[0].length - 1] === '\n')
  return [replacement(text, lonely ? old.start - blank[0].length : old.start, old.end, '')]
}

function render(text: string, path: readonly string[], value: Readonly<Record<string, unknown>>): string {
  const nested = path.reduceRight<unknown>((held, name) => ({ [name]: held }), value)
  return `${stringify(nested).trim()}\n`.replaceAll('\n', lineEndOf(text))
}

/** From the header to the end of the last pair, sub-tables included, whole lines. */
function blockOf(
  text: string,
  statements: readonly TomlStatement[],
  path: readonly string[],
  file: string,
): { start: number; end: number } | undefined {
  const first = statements.findIndex((one) => one.kind !== 'pair' && startsWith(one.path, path))
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
        `[${statement.path.join('.')}] stands apart from its table; move it there first`,
      )
    }
    if (!other) last = index
  }
  return { start: statements[first]?.start ?? 0, end: nextLine(text, statements[last]?.end ?? 0) }
}

function startsWith(path: readonly string[], prefix: readonly string[]): boolean {
  return prefix.every((name, index) => path[index] === name)
}

/** Refuses what sets the map of servers, or the entry, without a header of its own. */
function refuseInline(
  text: string,
  statements: readonly TomlStatement[],
  path: readonly string[],
  file: string,
): void {
  // Of a map of servers that goes as a whole, only what is its own counts.
  const map = path.length > 1 ? path.slice(0, -1) : path
  let table: readonly string[] = []
  for (const statement of statements) {
    if (statement.kind !== 'pair') {
      table = statement.path
      continue
    }
    const full = [...table, ...statement.path]
    // Pairs inside of the entry's own table, or of another entry's, are what they should be.
    if (table.length >= path.length || !startsWith(map, full.slice(0, map.length))) continue
    const { line } = positionOf(text, statement.start)
    const name = map.join('.')
    throw refusedFile(
      `${file}:${line}:`,
      `${name} is written inline or with dotted keys; write its entries as tables, [${name}.NAME], and try again`,
    )
  }
}
