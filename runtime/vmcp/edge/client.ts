/**
 * Reads what a client declared about itself. A member of the wrong type counts as not declared.
 */
import { hash } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { JsonObject } from '../../mcp/index.ts'
import type { ClientAbilities } from '../operation.ts'

const MAX_DISTINCT = 1_000
const known = new Map<string, ClientAbilities>()

export const NO_ABILITIES: ClientAbilities = readAbilities(Buffer.from('{}'))

/** Reads declared capabilities (raw JSON object). Tasks are left out: they are not relayed. Throws JsonFault. */
export function readAbilities(raw: Buffer): ClientAbilities {
  const text = raw.toString()
  const cached = known.get(text)
  if (cached) return cached
  const declared = new JsonObject(raw)
  const relayed = declared.raw('tasks') ? declared.with({ tasks: undefined }) : Buffer.from(raw)
  const abilities: ClientAbilities = {
    raw: relayed,
    elicitation: declared.raw('elicitation')?.[0] === 0x7b,
    sampling: declared.raw('sampling')?.[0] === 0x7b,
    roots: declared.raw('roots')?.[0] === 0x7b,
    signature: hash('sha256', canonical(JSON.parse(relayed.toString())), 'base64url'),
  }
  if (known.size >= MAX_DISTINCT) known.clear()
  known.set(text, abilities)
  return abilities
}

/** JSON with sorted members: equal values have one text. */
export function canonical(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${canonical(member)}`).join(',')}}`
}

/** The headers of a request that the allowlist lets through; the first value of a repeated one. */
export function passedHeaders(
  headers: IncomingHttpHeaders,
  allowed: readonly string[],
): Readonly<Record<string, string>> {
  if (allowed.length === 0) return NO_HEADERS
  const passed: Record<string, string> = {}
  for (const name of allowed) {
    const value = headers[name]
    const first = Array.isArray(value) ? value[0] : value
    if (first !== undefined) passed[name] = first
  }
  return passed
}

const NO_HEADERS: Readonly<Record<string, string>> = {}
