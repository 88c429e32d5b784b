/**
 * Tells whether a URI can have come from a URI template.
 *
 * Works in linear time on both, whatever a backend writes into its template: literals must occur in order, expressions
 * match what their operator can produce. Values are not extracted; the backend does that.
 * Source: RFC 6570 (levels 1 to 4, matching direction).
 */
export type TemplateMatcher = (uri: string) => boolean

type Part = { readonly literal: string } | { readonly accepts: (char: string) => boolean }

const maxTemplate = 2_048
const maxUri = 8_192

/** First character of what an expression expands to, and whether reserved characters may be in it. */
const operatorTable: Readonly<Record<string, { readonly stop: string }>> = {
  '+': { stop: '' },
  '#': { stop: '' },
  '.': { stop: '/?#' },
  '/': { stop: '?#' },
  ';': { stop: '/?#' },
  '?': { stop: '/#' },
  '&': { stop: '/#' },
}

/** An unreadable template matches nothing but itself. */
export function compileTemplate(template: string): TemplateMatcher {
  const parts = template.length > maxTemplate ? undefined : parse(template)
  if (!parts) return (uri) => uri === template
  return (uri) => uri.length <= maxUri && matches(parts, uri)
}

function parse(template: string): Part[] | undefined {
  const parts: Part[] = []
  let at = 0
  while (at < template.length) {
    const open = template.indexOf('{', at)
    if (open < 0) {
      parts.push({ literal: template.slice(at) })
      break
    }
    if (open > at) parts.push({ literal: template.slice(at, open) })
    const close = template.indexOf('}', open)
    if (close < 0 || close === open + 1) return undefined
    const operator = operatorTable[template.charAt(open + 1)]
    const stop = operator ? operator.stop : '/?#'
    parts.push({ accepts: (char) => !stop.includes(char) })
    at = close + 1
  }
  return parts
}

/**
 * Set-of-states matching: `reached[i]` is true when the first i characters of the URI are covered by the parts so far.
 * Cost is the product of both lengths at worst, without backtracking.
 */
function matches(parts: readonly Part[], uri: string): boolean {
  let reached = new Set([0])
  for (const part of parts) {
    const next = new Set<number>()
    if ('literal' in part) {
      for (const at of reached) {
        if (uri.startsWith(part.literal, at)) next.add(at + part.literal.length)
      }
    } else {
      let last = -1
      for (const at of reached) {
        for (let i = Math.max(at, last); i <= uri.length; i++) {
          next.add(i)
          last = i
          const char = uri[i]
          if (char === undefined || !part.accepts(char)) break
        }
      }
    }
    if (next.size === 0) return false
    reached = next
  }
  return reached.has(uri.length)
}
