/** MCPServer: what the author of a valid one should know. */
import type { MCPServer } from '../../../schemas/index.ts'
import { serverNames } from '../../children/names.ts'
import { policyNameWarnings, primaryProviderWarnings } from '../common/checks/policies.ts'
import { tlsWarnings } from '../common/serving-tls.ts'
import { hasCommand } from './stdio.ts'

export function serverWarnings(server: MCPServer): readonly string[] {
  const { spec } = server
  const found = [
    ...primaryProviderWarnings(spec.authzConfig),
    ...policyNameWarnings(spec.authzConfig),
    ...tlsWarnings(spec, serverNames(server.metadata.name).proxy),
  ]
  // RFC 2606: a host that cannot exist. `gatehouse import` writes it where it knows no image.
  if (/^[^/]+\.invalid(?::\d+)?\//.test(spec.image)) {
    found.push('image stands for one that is still to be set; no cluster can pull it')
  }
  if (spec.transport === 'stdio' && !hasCommand(spec)) {
    found.push(
      'stdio without a command: all sessions share one process, whose messages are in its container log',
    )
  }
  if (spec.transport === 'stdio' && (spec.replicas ?? 0) > 1) {
    found.push('transport stdio has one proxy at most; replicas is taken as 1')
  }
  return found
}
