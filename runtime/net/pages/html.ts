/**
 * Builds HTML from parts, escaping everything that is not marked as markup by this file. No I/O.
 */

/** Markup that may be put into a page as it is. */
export interface Html {
  readonly markup: string
}

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (char) => entities[char] ?? '')
}

type Part = string | Html | readonly Html[] | undefined

function render(part: Part): string {
  if (part === undefined) return ''
  if (typeof part === 'string') return escapeHtml(part)
  return 'markup' in part ? part.markup : part.map((one) => one.markup).join('')
}

/** Template tag: literal text is markup, every value is escaped unless it is Html. Values belong in quoted attributes. */
export function html(literals: TemplateStringsArray, ...parts: readonly Part[]): Html {
  let markup = literals[0] ?? ''
  for (const [index, part] of parts.entries()) markup += render(part) + (literals[index + 1] ?? '')
  return { markup }
}
