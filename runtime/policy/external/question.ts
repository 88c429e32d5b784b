/**
 * What questions to an external decision point are made of, in every wire format: the principal, hints, and arguments.
 *
 * Arguments are told as the backend will get them; where a member stands twice, both could read them differently, so these
 * are refused.
 * Source: docs/guides/decision-point.md.
 */
import { GatehouseError, type RuntimeDecisionPoint } from '../../../schemas/index.ts'
import { canonicalText, JsonError, workOn } from '../../mcp/index.ts'
import type { Claims } from '../claims.ts'
import { type AccessRequest, hintNames, type ToolHints } from '../requests.ts'

export type Principal = Readonly<Record<string, unknown>>
type Mapping = RuntimeDecisionPoint['claimMapping']

/** Names of the principal's members, each with the claims that give it: the first one that is there. */
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

/** Decision points of this convention expect it even where no claim gives it. */
const emptyMembers = { standard: {}, mpe: { mannotations: {} } } as const

export function principalOf(claims: Claims, mapping: Mapping): Principal {
  const given = Object.entries(principals[mapping]).flatMap(([member, names]) => {
    const name = names.find((one) => Object.hasOwn(claims, one))
    return name === undefined ? [] : [[member, claims[name]] as const]
  })
  return { ...emptyMembers[mapping], ...Object.fromEntries(given) }
}

/** Hints of a tool; undefined where it gives none. */
export function knownHints({ hints = {} }: AccessRequest): ToolHints | undefined {
  const known = hintNames.filter((hint) => hints[hint] !== undefined)
  return known.length > 0 ? Object.fromEntries(known.map((hint) => [hint, hints[hint]])) : undefined
}

/** The members of an object, without its braces. */
export function membersText(value: object): string {
  return JSON.stringify(value).slice(1, -1)
}

/** Undefined where there are none. Rejects with INVALID_PARAMS when two readers could read them differently. */
export async function argumentsText(raw: Buffer | undefined): Promise<string | undefined> {
  if (raw === undefined) return undefined
  try {
    if (raw[0] !== 0x7b) throw new JsonError('no object', 0)
    // Reads all of it: what is no JSON, or has a member twice, is refused.
    const text = await workOn(raw, canonicalText(raw))
    return text === '{}' ? undefined : raw.toString()
  } catch (cause) {
    if (!(cause instanceof JsonError)) throw cause
    throw new GatehouseError('INVALID_PARAMS', {
      detail:
        'Invalid params: arguments must be an object whose members have different names, at every depth',
      cause,
    })
  }
}
