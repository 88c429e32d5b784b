/**
 * What the author of a valid resource should know. Shown by kubectl; never a reason to refuse.
 */
import type { Kinds, VirtualMCPServer } from '../../schemas/index.ts'

type Resource = Kinds[keyof Kinds]

export function warningsOf(resource: Resource): readonly string[] {
  return resource.kind === 'VirtualMCPServer' ? virtualServerWarnings(resource) : []
}

function virtualServerWarnings({ spec }: VirtualMCPServer): string[] {
  const warnings: string[] = []
  if (spec.incomingAuth.authzConfig?.inline?.primaryUpstreamProvider !== undefined) {
    warnings.push(
      'authzConfig.inline.primaryUpstreamProvider is deprecated; set authServerConfig.primaryUpstreamProvider',
    )
  }
  return warnings
}
