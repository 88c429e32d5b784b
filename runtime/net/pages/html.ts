/** Markup that can be inserted into a page without escaping. */
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

/**
 * Template tag that keeps literal text as markup and escapes every value that is not Html. Use values only in text and
 * in quoted attributes.
 */
export function html(literals: TemplateStringsArray, ...parts: readonly Part[]): Html {
  let markup = literals[0] ?? ''
  for (const [index, part] of parts.entries()) markup += render(part) + (literals[index + 1] ?? '')
  return { markup }
}
