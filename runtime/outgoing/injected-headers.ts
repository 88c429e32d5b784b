/**
 * Rules for headers that configuration adds to requests: which names and values are legal, and the flag form
 * `Name=Value`.
 *
 * Messages name the header, never its value. Source: spec document 1 (--remote-forward-headers and -secret).
 */
import { GatehouseError } from '../../schemas/index.ts'
import { isHeaderName, isHeaderValue, restrictedForInjection } from '../net/index.ts'

const maxValueBytes = 8192

/** Why a name may not be injected, or undefined. */
export function headerNameProblem(name: string): string | undefined {
  if (name === '') return 'is required'
  if (!isHeaderName(name))
    return "must be a header name: letters, digits and -_.~!#$%&'*+^`|, 1 to 256 characters"
  if (restrictedForInjection.has(name.toLowerCase()))
    return `${name} is set by the gateway and may not be injected`
  return undefined
}

/** Why a value may not be sent, or undefined. The empty value is legal. */
export function headerValueProblem(value: string): string | undefined {
  if (!isHeaderValue(value)) return 'must not contain control characters or characters beyond Latin-1'
  if (Buffer.byteLength(value, 'latin1') > maxValueBytes)
    return `must not be longer than ${maxValueBytes} bytes`
  return undefined
}

export interface InjectedHeader {
  /** Lower case. */
  readonly name: string
  /** Read again at each request. */
  readonly value: () => string
}

/**
 * Headers of the two flags: `plain` holds Name=Value, `secret` holds Name=secret-name. The first `=` parts; names are
 * trimmed, values are taken as they are. A secret is looked up here and again at each use.
 *
 * Throws GatehouseError INVALID_CONFIG with every fault: malformed entries, restricted names, the same name twice in
 * any case, unknown secrets, values that cannot be sent.
 */
export function injectedHeaders(
  plain: readonly string[],
  secret: readonly string[],
  lookup: (secretName: string) => string | undefined,
): readonly InjectedHeader[] {
  const problems: string[] = []
  const found = new Map<string, InjectedHeader>()
  const add = (flag: string, entry: string, read: (part: string) => string | undefined) => {
    const mark = entry.indexOf('=')
    const name = entry.slice(0, Math.max(mark, 0)).trim()
    // Without "=" the whole entry may be a value: it is not repeated in the message.
    const problem = mark < 0 ? 'must have the form Name=…' : headerNameProblem(name)
    if (problem !== undefined) {
      problems.push(`${flag}: ${problem}`)
      return
    }
    const lower = name.toLowerCase()
    if (found.has(lower)) problems.push(`${flag}: the header ${name} is given twice`)
    const part = entry.slice(mark + 1)
    const value = read(part)
    const valueProblem = value === undefined ? `the secret ${part} was not found` : headerValueProblem(value)
    if (valueProblem !== undefined) problems.push(`${flag}: the header ${name}: ${valueProblem}`)
    found.set(lower, { name: lower, value: () => read(part) ?? '' })
  }
  for (const entry of plain) add('--remote-forward-headers', entry, (part) => part)
  for (const entry of secret) add('--remote-forward-headers-secret', entry, lookup)
  if (problems.length > 0) throw new GatehouseError('INVALID_CONFIG', { detail: problems.join('\n') })
  return [...found.values()]
}
