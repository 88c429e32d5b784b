/**
 * Session storage of a virtual server: its Secret, and a word about several replicas without one.
 */
import { mostReplicas } from '../../../children/serving/availability.ts'
import type { SyncFailure } from '../../../sync/conditions.ts'
import type { SyncContext } from '../../../sync/context.ts'
import type { PodNeeds } from '../../../runtime-config/needs.ts'
import { checkReplicaSessions, checkSessionPassword } from '../../../runtime-config/session-storage.ts'

type Context = SyncContext<'VirtualMCPServer'>

export function checkSessions({ parent, conditions, settings }: Context): void {
  const { sessionStorage, config } = parent.spec
  const provider = (sessionStorage ?? config?.sessionStorage)?.provider
  checkReplicaSessions(conditions, settings, provider, mostReplicas(parent.spec))
}

export function checkSessionSecret(context: Context, needs: PodNeeds): SyncFailure | undefined {
  const { sessionStorage, config } = context.parent.spec
  // A store of spec.config takes its password from the environment that podTemplateSpec gives.
  if (!sessionStorage && config?.sessionStorage) return undefined
  return checkSessionPassword(context, sessionStorage, needs)
}
