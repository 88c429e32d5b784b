/**
 * What a received message may repeat, and what its `Connection` header takes out of it. Names are lower case. Which
 * headers configuration may set is in schemas/headers.ts.
 * Source: RFC 9110 sections 5.3 and 7.6.1.
 */

/** Request headers whose repetition makes two readers disagree; a repeated one is refused. */
const singletons: ReadonlySet<string> = new Set([
  'authorization',
  'content-type',
  'host',
  'last-event-id',
  'mcp-protocol-version',
  'mcp-session-id',
])

/** The lower-case names that a `Connection` header lists, without the framing options. */
export function namedByConnection(value: string | undefined): readonly string[] {
  if (value === undefined || value === 'keep-alive' || value === 'close') return []
  return value
    .toLowerCase()
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '' && name !== 'close' && name !== 'keep-alive')
}

/** The first singleton that occurs twice in a raw header list, or undefined. */
export function repeatedSingleton(rawHeaders: readonly string[]): string | undefined {
  let seen: string[] | undefined
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const raw = rawHeaders[i] ?? ''
    // Cheap filter: none of the singletons has another length.
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
