/** MCPServer: what the author of a valid one should know. */
import type { MCPServer } from '../../../schemas/index.ts'
import { fieldsOf, listOf } from '../../kube.ts'
import { policyNameWarnings, primaryProviderWarnings } from '../common/checks/policies.ts'

export function serverWarnings({ spec }: MCPServer): readonly string[] {
  const found = [...primaryProviderWarnings(spec.authzConfig), ...policyNameWarnings(spec.authzConfig)]
  // RFC 2606: a host that cannot exist. `gatehouse import` writes it where it knows no image.
  if (/^[^/]+\.invalid(?::\d+)?\//.test(spec.image)) {
    found.push('image stands for one that is still to be set; no cluster can pull it')
  }
  const containers = listOf(fieldsOf(fieldsOf(spec.podTemplateSpec)['spec'])['containers']).map(fieldsOf)
  const command = containers.find((container) => container['name'] === 'mcp')?.['command']
  if (spec.transport === 'stdio' && !Array.isArray(command)) {
    found.push(
      'transport stdio needs the command of the container mcp in podTemplateSpec to run in a cluster',
    )
  }
  if (spec.transport === 'stdio' && (spec.replicas ?? 0) > 1) {
    found.push('transport stdio has one proxy at most; replicas is taken as 1')
  }
  return found
}
