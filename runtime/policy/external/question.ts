/**
 * What an external decision point is asked: principal, operation, resource and context, as one JSON text.
 *
 * The text is all that a decision can depend on, so a cache of decisions is keyed by it. Arguments are told as the backend
 * will get them; where a member stands twice, both could read them differently, so these are refused.
 * Source: docs/guides/decision-point.md.
 */
import { GatehouseError, type RuntimeDecisionPoint } from '../../../schemas/index.ts'
import { canonicalText, JsonError, workOn } from '../../mcp/index.ts'
import type { Claims } from '../claims.ts'
import { type AccessRequest, actions, hintNames } from '../requests.ts'

export type QuestionSettings = Pick<RuntimeDecisionPoint, 'context' | 'claimMapping'>

/** Names of the principal's members, each with the claims that give it: the first one that is there. */
const principals: Readonly<Record<RuntimeDecisionPoint['claimMapping'], Readonly<Record<string, string[]>>>> =
  {
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

export function principalOf(
  claims: Claims,
  mapping: RuntimeDecisionPoint['claimMapping'],
): Readonly<Record<string, unknown>> {
  const given = Object.entries(principals[mapping]).flatMap(([member, names]) => {
    const name = names.find((one) => Object.hasOwn(claims, one))
    return name === undefined ? [] : [[member, claims[name]] as const]
  })
  return { ...emptyMembers[mapping], ...Object.fromEntries(given) }
}

/** JSON text. Rejects with INVALID_PARAMS when arguments are told that two readers could read differently. */
export async function questionText(
  server: string,
  principal: Readonly<Record<string, unknown>>,
  request: AccessRequest,
  { context }: QuestionSettings,
): Promise<string> {
  const { feature, operation } = actions[request.action]
  const { id, origin, hints = {} } = request
  const known = hintNames.filter((hint) => hints[hint] !== undefined)
  const args = context?.includeArgs ? await argumentsText(request.arguments) : undefined
  const mcp = [
    ...(context?.includeOperation ? [textOf({ feature, operation, resource_id: id })] : []),
    ...(known.length > 0
      ? [textOf({ annotations: Object.fromEntries(known.map((hint) => [hint, hints[hint]])) })]
      : []),
    ...(args === undefined ? [] : [`"args":${args}`]),
  ]
  const members = [
    ...(mcp.length > 0 ? [`"mcp":{${mcp.join(',')}}`] : []),
    ...(context?.includeOperation && origin
      ? [textOf({ gatehouse: { backend: origin.backend, original: origin.original } })]
      : []),
  ]
  const asked = { principal, operation: `mcp:${feature}:${operation}` }
  const resource = `mrn:mcp:${server}:${feature}:${id}`
  return `{${textOf(asked)},${textOf({ resource })},"context":{${members.join(',')}}}`
}

/** The members of an object, without its braces. */
function textOf(value: object): string {
  return JSON.stringify(value).slice(1, -1)
}

/** Undefined where there are none. */
async function argumentsText(raw: Buffer | undefined): Promise<string | undefined> {
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
