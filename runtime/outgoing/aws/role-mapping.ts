/**
 * Chooses the role to assume from the caller's claims.
 *
 * Tries mappings by ascending priority, then mappings without a priority. Mappings with equal priority keep their
 * configured order. A mapping whose expression fails for the claims does not match.
 * Source: docs/reference/specification/external-auth.md#cloudSts (cloudSts.roleMappings).
 */
import { type CelProgram, compileBoundedCel, compileCel } from '../../../schemas/index.ts'
import type { CloudStsBlock, StrategyConfig } from '../config.ts'

type Mapping = NonNullable<CloudStsBlock['roleMappings']>[number]
type Claims = Readonly<Record<string, unknown>>

/** Returns the role ARN for the claims, or undefined when no mapping matches and there is no fallback. */
export type RoleChooser = (claims: Claims) => string | undefined

/** Throws GatehouseError INVALID_CONFIG when a matcher does not compile. */
export function makeRoleChooser(block: CloudStsBlock): RoleChooser {
  const roleClaim = roleClaimOf(block)
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

function roleClaimOf({ roleClaim }: CloudStsBlock): string {
  return roleClaim || 'groups'
}

/**
 * Returns the claims in which the strategies look for roles. These claims get the group prefix of an additional issuer.
 */
export function roleClaimsOf(strategies: readonly (StrategyConfig | undefined)[]): readonly string[] {
  return strategies.flatMap((strategy) => (strategy?.cloudSts ? roleClaimOf(strategy.cloudSts) : []))
}

/** Treats two missing priorities as equal, because subtracting Infinity from Infinity yields NaN. */
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
