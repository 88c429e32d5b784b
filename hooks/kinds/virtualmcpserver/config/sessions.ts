/**
 * Session storage of a virtual server: its Secret, and a word about several replicas without one.
 */
import type { Failure } from '../../../sync/conditions.ts'
import type { SyncContext } from '../../../sync/context.ts'
import type { PodNeeds } from '../../../runtime-config/needs.ts'
import { checkReplicaSessions } from '../../../runtime-config/session-storage.ts'

type Context = SyncContext<'VirtualMCPServer'>

export function checkSessions({ parent, conditions, settings }: Context): void {
  const { sessionStorage, config, replicas } = parent.spec
  const provider = (sessionStorage ?? config?.sessionStorage)?.provider
  checkReplicaSessions(conditions, settings, provider, replicas)
}

export function checkSessionSecret(context: Context, needs: PodNeeds): Failure | undefined {
  const password = context.parent.spec.sessionStorage?.passwordRef
  if (!password) return undefined
  needs.revision('sessionStorage', context.secretRevision([password]))
  const missing = context.missingSecrets([password])
  if (missing.length === 0) return undefined
  return {
    reason: 'SecretNotFound',
    message: `spec.sessionStorage.passwordRef: not found: ${missing.join('; ')}`,
  }
}
