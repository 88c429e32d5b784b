/** The hash that identifies the policies of a decision. Shadow policies are excluded, because they are not enforced. */
import { hash } from 'node:crypto'
import type { RuntimeAuthz } from '../../../schemas/index.ts'

export function digestOf(config: Omit<RuntimeAuthz, 'type'>, serverName: string): string {
  const { policies, entitiesJson, groupEntityType, groupClaimName, roleClaimName, primaryUpstreamProvider } =
    config
  const settings = [groupClaimName, roleClaimName, primaryUpstreamProvider].map((value) => value ?? null)
  const all = [policies, entitiesJson, groupEntityType, ...settings, serverName]
  return hash('sha256', JSON.stringify(all), 'hex').slice(0, 16)
}
