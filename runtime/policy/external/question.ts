/**
 * The parts of a query that all wire formats share: the principal, hints and arguments.
 *
 * The decision point gets the arguments exactly as the backend does. Duplicate members are rejected, because the
 * decision point and the backend could read them differently.
 * Source: docs/guides/decision-point.md.
 */
import { GatehouseError, type RuntimeDecisionPoint } from '../../../schemas/index.ts'
import { canonicalText, JsonError, workOn } from '../../mcp/index.ts'
import type { Claims } from '../claims.ts'
import { type AccessRequest, hintNames, type ToolHints } from '../requests.ts'

export type Principal = Readonly<Record<string, unknown>>
type Mapping = RuntimeDecisionPoint['claimMapping']

/** Maps each member of the principal to claims. The first claim that is present applies. */
const principals: Readonly<Record<Mapping, Readonly<Record<string, string[]>>>> = {
  standard: {
    sub: ['sub'],
    roles: ['roles'],
    groups: ['groups'],
    scopes: ['scopes', 'scope'],
  },
  mpe: {
    sub: ['sub'],
    mroles: ['mroles', 'roles'],
    mgroups: ['mgroups', 'groups'],
    scopes: ['scopes', 'scope'],
    mclearance: ['mclearance', 'clearance'],
    mannotations: ['mannotations', 'annotations'],
  },
}

/** Members that decision points using this mapping require even if no claim provides them. */
const emptyMembers = { standard: {}, mpe: { mannotations: {} } } as const

export function principalOf(claims: Claims, mapping: Mapping): Principal {
  const given = Object.entries(principals[mapping]).flatMap(([member, names]) => {
    const name = names.find((one) => Object.hasOwn(claims, one))
    return name === undefined ? [] : [[member, claims[name]] as const]
  })
  return { ...emptyMembers[mapping], ...Object.fromEntries(given) }
}

/** Returns a tool's hints, or undefined when the tool has no hints. */
export function knownHints({ hints = {} }: AccessRequest): ToolHints | undefined {
  const known = hintNames.filter((hint) => hints[hint] !== undefined)
  return known.length > 0 ? Object.fromEntries(known.map((hint) => [hint, hints[hint]])) : undefined
}

/** Returns an object's members as JSON, without the braces. */
export function membersText(value: object): string {
  return JSON.stringify(value).slice(1, -1)
}

/**
 * Returns undefined when the request has no arguments. Rejects with INVALID_PARAMS when two parsers could read the
 * arguments differently.
 */
export async function argumentsText(raw: Buffer | undefined): Promise<string | undefined> {
  if (raw === undefined) return undefined
  try {
    if (raw[0] !== 0x7b) throw new JsonError('not an object', 0)
    // Parses everything, to reject invalid JSON and duplicate members.
    const text = await workOn(raw, canonicalText(raw))
    return text === '{}' ? undefined : raw.toString()
  } catch (cause) {
    if (!(cause instanceof JsonError)) throw cause
    throw new GatehouseError('INVALID_PARAMS', {
      detail: 'Invalid params: arguments must be an object with unique member names, at every depth',
      cause,
    })
  }
}
