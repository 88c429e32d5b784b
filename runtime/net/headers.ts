/**
 * Checks the headers of received messages: finds headers that must not be repeated, and reads the names listed in
 * `Connection`. Names are in lower case. For the headers that a configuration may set, see schemas/headers.ts.
 * Source: RFC 9110 sections 5.3 and 7.6.1.
 */

/** Request headers that must not be repeated, because two readers could pick different values. */
const singletons: ReadonlySet<string> = new Set([
  'authorization',
  'content-type',
  'host',
  'last-event-id',
  'mcp-protocol-version',
  'mcp-session-id',
])

/** Returns the header names that a `Connection` header lists, in lower case and without `close` and `keep-alive`. */
export function connectionHeaderNames(value: string | undefined): readonly string[] {
  if (value === undefined || value === 'keep-alive' || value === 'close') return []
  return value
    .toLowerCase()
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '' && name !== 'close' && name !== 'keep-alive')
}

/** Returns the first singleton that occurs twice in a raw header list, or undefined. */
export function repeatedSingleton(rawHeaders: readonly string[]): string | undefined {
  let seen: string[] | undefined
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const raw = rawHeaders[i] ?? ''
    // Compares lengths first, which is cheaper than comparing names.
    const length = raw.length
    if (length !== 4 && length !== 12 && length !== 13 && length !== 14 && length !== 20) continue
    const name = raw.toLowerCase()
    if (!singletons.has(name)) continue
    if (seen?.includes(name)) return name
    if (seen) seen.push(name)
    else seen = [name]
  }
  return undefined
}
