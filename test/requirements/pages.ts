/**
 * Writes docs/reference/specification/ from the requirement tables: `node test/requirements/pages.ts [--check]`.
 *
 * One page per document, one heading per section, one anchor per section and per requirement id, so that comments and
 * docs can cite `docs/reference/specification/<page>#<section or id>`. With --check it writes nothing and exits 1 when a page is
 * not current.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { requirements } from './index.ts'
import { type Page, pages } from './sections.ts'
import type { Requirement } from './table.ts'

const folder = resolve(import.meta.dirname, '../../docs/reference/specification')

/** The anchor of a section: `token exchange` is cited as `#token-exchange`. */
function sectionAnchor(section: string): string {
  return section.replaceAll(' ', '-')
}

/** Every anchor of the specification, as `page.md#anchor`. */
export function anchors(): ReadonlySet<string> {
  return new Set(
    pages.flatMap((page) => [
      ...Object.keys(page.sections).map((section) => `${page.file}#${sectionAnchor(section)}`),
      ...rowsOf(page).map((row) => `${page.file}#${row.id}`),
    ]),
  )
}

export function specificationPages(): ReadonlyMap<string, string> {
  return new Map([
    ['README.md', overview()],
    ...pages.map((page): [string, string] => [page.file, text(page)]),
  ])
}

function rowsOf(page: Page): readonly Requirement[] {
  return requirements.filter((row) => row.doc === page.doc)
}

function overview(): string {
  const list = pages.map(
    (page) => `- [${page.title}](${page.file}): ${rowsOf(page).length} rows. ${page.about}`,
  )
  return `# Specification

What Gatehouse promises, one row per promise. Every row has an id, and at least one test cites it; \`node
test/requirements/print.ts --json\` lists them with their tests. Comments in the sources refer to these pages.

${list.join('\n')}

Generated from \`test/requirements/\` by \`make schemas\`.
`
}

function text(page: Page): string {
  const sections = Object.entries(page.sections).map(([key, [heading, about]]) => {
    const rows = rowsOf(page)
      .filter((row) => row.section === key)
      .map((row) => `| <a id="${row.id}"></a>\`${row.id}\` | ${cell(row.says)} |`)
    return `## <a id="${sectionAnchor(key)}"></a>${heading}\n\n${about}\n\n| Id | Promise |\n| --- | --- |\n${rows.join('\n')}\n`
  })
  return `# ${page.title}\n\n${page.about}\n\n${sections.join('\n')}`
}

function cell(says: string): string {
  return says.replaceAll('|', '\\|').replaceAll('<', '&lt;').replaceAll('\n', ' ')
}

if (process.argv[1] === import.meta.filename) {
  const check = process.argv.includes('--check')
  mkdirSync(folder, { recursive: true })
  for (const [file, content] of specificationPages()) {
    const path = join(folder, file)
    if (!check) writeFileSync(path, content)
    else if (readFileSync(path, 'utf8') !== content) {
      console.error(`docs/reference/specification/${file} is not current: run make schemas`)
      process.exitCode = 1
    }
  }
}
