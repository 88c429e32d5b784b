/**
 * Chooses the role to assume from the caller's claims.
 *
 * Mappings are tried by ascending priority, those without one last, equal ones in configuration order. A mapping whose
 * expression fails on these claims does not match. Source: docs/reference/specification/external-auth.md#cloudSts (cloudSts.roleMappings).
 */
import { type CelProgram, compileBoundedCel, compileCel } from '../../../schemas/index.ts'
import type { CloudStsBlock } from '../config.ts'

type Mapping = NonNullable<CloudStsBlock['roleMappings']>[number]
type Claims = Readonly<Record<string, unknown>>

/** Role ARN for these claims, or undefined when nothing matches and there is no fallback. */
export type RoleChooser = (claims: Claims) => string | undefined

/** Throws GatehouseError INVALID_CONFIG when a matcher does not compile. */
export function roleChooser(block: CloudStsBlock): RoleChooser {
  const roleClaim = block.roleClaim || 'groups'
  const contains = compileCel('value in claims[roleClaim]')
  const rank = (mapping: Mapping) => mapping.priority ?? Number.POSITIVE_INFINITY
  const ordered = (block.roleMappings ?? [])
    .toSorted((a, b) => compare(rank(a), rank(b)))
    .map((mapping) => ({
      roleArn: mapping.roleArn,
      matches: matcherOf(mapping, contains, roleClaim),
    }))
  return (claims) =>
    ordered.find(({ matches }) => matches(claims))?.roleArn ?? (block.fallbackRoleArn || undefined)
}

/** Two missing priorities are equal; their difference would not be a number. */
function compare(a: number, b: number): number {
  if (a === b) return 0
  return a < b ? -1 : 1
}

function matcherOf(mapping: Mapping, contains: CelProgram, roleClaim: string): (claims: Claims) => boolean {
  if (mapping.matcher === undefined) {
    return (claims) => isTrue(contains, { claims, roleClaim, value: mapping.claim ?? null })
  }
  const program = compileBoundedCel(mapping.matcher)
  return (claims) => isTrue(program, { claims })
}

function isTrue(program: CelProgram, variables: Readonly<Record<string, unknown>>): boolean {
  try {
    return program(variables) === true
  } catch {
    return false
  }
}
