/** Writes the table of authentication types, a section of a guide that is written by hand otherwise. */
import type { Bundle } from '../schema.ts'

/** Type and what it sends, from the descriptions of the settings in MCPExternalAuthConfig. */
export function authTypesTable(bundle: Bundle): string {
  const properties = Object.entries(bundle.defs['MCPExternalAuthConfigSpec']?.properties ?? {})
  const rows = properties
    .filter(([name]) => name !== 'type')
    .map(([name, { description = '' }]) => `| \`${name}\` | ${description.replace(/^For type \w+: /, '')} |`)
  return ['| type | What it does |', '|---|---|', ...rows].join('\n')
}

/** The page with its generated section replaced. Throws when it has none of that name. */
export function withSection(page: string, name: string, text: string): string {
  const [begin, end] = [`<!-- generated: ${name} -->`, `<!-- end of ${name} -->`]
  const [from, to] = [page.indexOf(begin), page.indexOf(end)]
  if (from === -1 || to < from) throw new Error(`the page has no section between ${begin} and ${end}`)
  return `${page.slice(0, from)}${begin}\n\n${text}\n\n${page.slice(to)}`
}
