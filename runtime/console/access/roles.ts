/** Which roles the claims of a user grant: values are compared exactly, with a claim that is a text or a list of texts. */
import type { Role } from '../api.ts'

export interface RoleRule {
  readonly role: Role
  readonly claim: string
  readonly values: readonly string[]
}

export function rolesOf(
  claims: Readonly<Record<string, unknown>>,
  rules: readonly RoleRule[],
): readonly Role[] {
  const granted = rules.filter(({ claim, values }) => {
    const found = Object.hasOwn(claims, claim) ? claims[claim] : undefined
    const texts: readonly unknown[] = Array.isArray(found) ? found : [found]
    return texts.some((text) => typeof text === 'string' && values.includes(text))
  })
  return [...new Set(granted.map(({ role }) => role))]
}
