/**
 * Rules for path values. They ensure that an argument cannot change which operation is called. Source: RFC 3986, 3.3.
 */

/** Returns the rule that a path value violates, as the end of a sentence; undefined for a valid value. */
export function pathValueViolation(value: string): string | undefined {
  if (value === '') return 'must not be empty'
  if (!value.isWellFormed()) return 'must be valid Unicode'
  if (/\p{Cc}/u.test(value)) return 'must not contain control characters'
  // Some servers decode a path twice.
  for (const text of [value, decodedOnce(value)]) {
    if (text === '.' || text === '..') return 'must not be . or ..'
    if (/[/\\]/.test(text)) return 'must not contain / or \\'
  }
  return undefined
}

function decodedOnce(value: string): string {
  return value.replaceAll(/%(2e|2f|5c)/gi, (_whole, digits: string) =>
    String.fromCharCode(Number.parseInt(digits, 16)),
  )
}
