/**
 * A problem in a document: the path to the field, and a message that states the shape of the value and the allowed
 * values. The message never contains a value that could be a secret.
 */
export interface Violation {
  /** Path such as `spec.upstreamProviders[0].oidcConfig.issuerUrl`; '' for the document itself. */
  readonly path: string
  readonly message: string
  /** The violated rule, which determines the reason in a workflow's condition. The rule never appears in output. */
  readonly rule?: 'cycle' | 'template' | 'schema'
}

/** Returns one line per problem, in the form `path: message`; '' when there are none. */
export function formatViolations(violations: readonly Violation[]): string {
  return violations.map(({ path, message }) => (path === '' ? message : `${path}: ${message}`)).join('\n')
}

/** Appends a field, list index or map key to `parent`. */
export function below(parent: string, key: string | number): string {
  if (typeof key === 'number') return `${parent}[${key}]`
  if (!/^[A-Za-z_][A-Za-z0-9_-]*$/.test(key)) return `${parent}[${JSON.stringify(clip(key))}]`
  return parent === '' ? key : `${parent}.${key}`
}

function clip(text: string): string {
  return text.length > 80 ? `${text.slice(0, 77)}...` : text
}

/** Describes a value's shape. */
export function shapeOf(value: unknown): string {
  if (value === undefined) return 'nothing'
  if (value === null) return 'null'
  if (Array.isArray(value))
    return value.length === 0 ? 'an empty list' : `a list of ${count(value.length, 'item')}`
  if (typeof value === 'string') {
    return value === '' ? 'an empty string' : `a string of ${count(Array.from(value).length, 'character')}`
  }
  if (typeof value === 'number') return Number.isInteger(value) ? 'a whole number' : 'a number'
  if (typeof value === 'boolean') return `the boolean ${value}`
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`
}

export function count(n: number, noun: string): string {
  return `${n} ${noun}${n === 1 ? '' : 's'}`
}

/** Formats a list such as `a, b or c`. */
export function oneOf(words: readonly string[]): string {
  if (words.length < 2) return words.join('')
  return `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`
}

/** Returns the most similar word in `known`, or undefined when no word is similar enough. */
export function nearest(word: string, known: readonly string[]): string | undefined {
  const lower = word.toLowerCase()
  let best: string | undefined
  let bestDistance = Math.max(1, Math.floor(lower.length / 3)) + 1
  for (const candidate of known) {
    const distance =
      candidate.toLowerCase() === lower ? 0 : editDistance(lower, candidate.toLowerCase(), bestDistance)
    if (distance < bestDistance) {
      best = candidate
      bestDistance = distance
    }
  }
  return best
}

/**
 * Returns the edit distance, where a swap of two adjacent characters counts as one edit; `limit` when the distance is
 * `limit` or more.
 */
function editDistance(a: string, b: string, limit: number): number {
  if (Math.abs(a.length - b.length) >= limit || a.length > 64 || b.length > 64) return limit
  let before: number[] = []
  let previous = Array.from({ length: b.length + 1 }, (_, j) => j)
  for (let i = 1; i <= a.length; i++) {
    const current = [i]
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1] ? 0 : 1
      let cost = Math.min((previous[j] ?? 0) + 1, (current[j - 1] ?? 0) + 1, (previous[j - 1] ?? 0) + same)
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        cost = Math.min(cost, (before[j - 2] ?? 0) + 1)
      }
      current.push(cost)
    }
    before = previous
    previous = current
  }
  return Math.min(previous[b.length] ?? limit, limit)
}
