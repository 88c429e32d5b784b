/**
 * Checks whether a URI matches a URI template.
 *
 * Literals must occur in order. An expression matches any text that its operator can produce. The backend, not this
 * module, extracts the values. Matching does not backtrack. The cost of a match is at most the number of parts times
 * the length of the URI. Each lookup has a budget for all of a backend's templates.
 * Source: RFC 6570 (levels 1 to 4, matching direction).
 */

/** Remaining steps. A step takes about a nanosecond. No template matches once all steps are used up. */
export interface MatchWork {
  left: number
}

export type TemplateMatcher = (uri: string, work: MatchWork) => boolean

type Part = { readonly literal: string } | { readonly stop: string }

const maxTemplate = 2_048
const maxUri = 8_192
const maxExpressions = 32
/** Number of steps for each character that an expression visits. */
const expressionCost = 4

/** Number of steps that a lookup may spend on one backend's templates. */
export const maxMatchWork = 4_000_000

/** The first character of an expression's expansion, and whether the expansion may contain reserved characters. */
const operatorTable: Readonly<Record<string, { readonly stop: string }>> = {
  '+': { stop: '' },
  '#': { stop: '' },
  '.': { stop: '/?#' },
  '/': { stop: '?#' },
  ';': { stop: '/?#' },
  '?': { stop: '/#' },
  '&': { stop: '/#' },
}

/** Compiles a template. A template that is invalid or too large matches only its own text. */
export function compileTemplate(template: string): TemplateMatcher {
  const parts = template.length > maxTemplate ? undefined : parse(template)
  if (!parts) return (uri) => uri === template
  return (uri, work) => uri.length <= maxUri && work.left > 0 && matches(parts, uri, work)
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
    parts.push({ stop: operator ? operator.stop : '/?#' })
    at = close + 1
  }
  return parts.filter((part) => 'stop' in part).length > maxExpressions ? undefined : parts
}

/** `reached[i]` is 1 if the parts so far match the first i characters of the URI. */
function matches(parts: readonly Part[], uri: string, work: MatchWork): boolean {
  const [first] = parts
  // The templates in a catalog usually start with different literals.
  if (first && 'literal' in first && !uri.startsWith(first.literal)) return false
  let reached = new Uint8Array(uri.length + 1)
  reached[0] = 1
  for (const part of parts) {
    work.left -= reached.length * ('stop' in part ? expressionCost : 1)
    if (work.left < 0) return false
    const next =
      'literal' in part
        ? afterLiteral(reached, part.literal, uri, work)
        : afterExpression(reached, part.stop, uri)
    if (!next) return false
    reached = next
  }
  return reached[uri.length] === 1
}

/** Returns undefined if the literal occurs at no reachable position. */
function afterLiteral(
  reached: Uint8Array,
  literal: string,
  uri: string,
  work: MatchWork,
): Uint8Array<ArrayBuffer> | undefined {
  const next = new Uint8Array(reached.length)
  let found = false
  for (let at = reached.indexOf(1); at >= 0; at = reached.indexOf(1, at + 1)) {
    work.left -= literal.length
    if (work.left < 0) return undefined
    if (!uri.startsWith(literal, at)) continue
    next[at + literal.length] = 1
    found = true
  }
  return found ? next : undefined
}

/** Extends each reached position up to the first character that the expression cannot produce. */
function afterExpression(reached: Uint8Array, stop: string, uri: string): Uint8Array<ArrayBuffer> {
  const next = new Uint8Array(reached.length)
  let covers = false
  for (let i = 0; i < reached.length; i++) {
    if (reached[i] === 1) covers = true
    if (!covers) continue
    next[i] = 1
    if (stop.includes(uri.charAt(i)) && i < uri.length) covers = false
  }
  return next
}
