/**
 * The path language for identityFromToken and tokenResponseMapping, which selects a value in a token response.
 *
 * path  := step { ("." | "|") step }
 * step  := key | index | "@upstreamjwt"
 *
 * Keys are literal text, in which `\.`, `\|`, `\@` and `\\` escape the characters. An index selects an element of a
 * list. `@upstreamjwt` reads the claims of a compact JWT *without* checking its signature. The only basis for trust is
 * the TLS connection to the provider (docs/reference/specification/external-auth.md). Wildcards, queries and other
 * modifiers are not supported.
 */

export type TokenPath = readonly PathStep[]
type PathStep = { readonly key: string } | { readonly jwt: true }

/** Parses a path. Returns the reason as a string when the path is invalid. */
export function parseTokenPath(path: string): TokenPath | string {
  const parts = split(path)
  if (parts.some((part) => part === '')) return 'must not have an empty step'
  const steps: PathStep[] = []
  for (const part of parts) {
    if (part === '@upstreamjwt') steps.push({ jwt: true })
    else if (/^[@#*?[\]{}]|^\.\./.test(part)) return `must not use "${part.slice(0, 20)}"`
    else steps.push({ key: part.replace(/\\(.)/g, '$1') })
  }
  return 'jwt' in (steps[0] ?? { key: '' }) ? 'must name a value before @upstreamjwt' : steps
}

/** Splits at unescaped dots and pipes. Keeps the escapes. */
function split(path: string): readonly string[] {
  const parts = ['']
  for (let at = 0; at < path.length; at++) {
    const char = path[at] ?? ''
    if (char === '\\') {
      parts[parts.length - 1] += char + (path[at + 1] ?? '\\')
      at += 1
    } else if (char === '.' || char === '|') parts.push('')
    else parts[parts.length - 1] += char
  }
  return parts
}

/** Returns the value at the path; undefined when a step finds no value. */
export function followTokenPath(path: TokenPath, from: unknown): unknown {
  let value = from
  for (const step of path) {
    value = 'jwt' in step ? readClaims(value) : member(value, step.key)
    if (value === undefined) return undefined
  }
  return value
}

function member(value: unknown, key: string): unknown {
  if (Array.isArray(value)) return /^(0|[1-9]\d{0,5})$/.test(key) ? value[Number(key)] : undefined
  if (typeof value !== 'object' || value === null) return undefined
  const own = Object.getOwnPropertyDescriptor(value, key)
  return own?.value
}

function readClaims(token: unknown): unknown {
  if (typeof token !== 'string') return undefined
  const parts = token.split('.')
  const [, payload = ''] = parts
  if (parts.length !== 3 || !/^[\w-]+$/.test(payload)) return undefined
  try {
    return parseKeepingDigits(Buffer.from(payload, 'base64url').toString('utf8'))
  } catch {
    return undefined
  }
}

/**
 * Like JSON.parse, but returns an integer that is too large for a double as a string of digits. Otherwise, rounding
 * could make two user ids equal. Throws SyntaxError.
 */
export function parseKeepingDigits(json: string): unknown {
  return JSON.parse(json, (_key, value: unknown, context?: { source?: string }) => {
    if (typeof value !== 'number' || Number.isSafeInteger(value)) return value
    const source = context?.source ?? ''
    return /^-?\d+$/.test(source) ? source : value
  })
}

/**
 * Returns a user id as a string: a non-empty string, or a number that was not rounded. Returns undefined for anything
 * else.
 */
export function identifierOf(value: unknown): string | undefined {
  if (typeof value === 'string') return value === '' ? undefined : value
  return typeof value === 'number' && Number.isSafeInteger(value) ? String(value) : undefined
}
