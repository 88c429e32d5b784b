/** MCPRemoteProxy: what the author of a valid one should know. */
import type { MCPRemoteProxy } from '../../../schemas/index.ts'
import { remoteProxyNames } from '../../children/names.ts'
import { policyNameWarnings, primaryProviderWarnings } from '../common/checks/policies.ts'
import { tlsWarnings } from '../common/serving-tls.ts'

export function remoteProxyWarnings({ metadata, spec }: MCPRemoteProxy): readonly string[] {
  return [
    ...primaryProviderWarnings(spec.authzConfig),
    ...policyNameWarnings(spec.authzConfig),
    ...tlsWarnings(spec, remoteProxyNames(metadata.name).proxy),
  ]
}
