/**
 * MCPToolLock: the approved definitions of one backend. It has no children. Virtual servers with `config.pinning` copy
 * the lock into their configuration and report differences.
 */
import type { KindHooks } from '../kind-hooks.ts'
import { coreRelated } from '../../sync/rules.ts'
import { reportLabels } from '../../children/labels.ts'
import { specFailure } from '../../references/resolve.ts'
import { type SyncContext, observedFields } from '../../sync/context.ts'
import type { SyncResponse } from '../../sync/protocol.ts'
import { reportProgress } from '../../sync/progress.ts'
import { observedDrift } from './drift.ts'
import { toolLockViolations } from './validate.ts'

export const mcpToolLock: KindHooks<'MCPToolLock'> = {
  kind: 'MCPToolLock',
  childKinds: [],
  relatedKinds: [coreRelated.ConfigMap],
  validate: toolLockViolations,
  // Selects reports by label, because a lock does not refer to the servers that report on it.
  customize: () => ({
    relatedResources: [{ ...coreRelated.ConfigMap, labelSelector: { matchLabels: reportLabels } }],
  }),
  sync,
}

function sync(context: SyncContext<'MCPToolLock'>): SyncResponse {
  const failure = specFailure(context.violations, 'ValidationFailed')
  context.conditions.check('Valid', failure, 'ValidationSucceeded', 'Spec validation passed')
  const drift = failure ? undefined : observedDrift(context)
  setInSync(context, drift)
  reportProgress(context, { failures: failure ? [failure] : [] })
  const seen = drift?.lock === 'ok' ? { counts: drift.counts, drift: drift.drift } : {}
  return { status: { ...observedFields(context), ...seen }, children: [] }
}

function setInSync({ conditions }: SyncContext<'MCPToolLock'>, seen: ReturnType<typeof observedDrift>): void {
  if (!seen) {
    const message = 'No virtual server with config.pinning has listed the backend'
    conditions.set('InSync', 'Unknown', 'NotObserved', message)
    return
  }
  if (seen.lock !== 'ok') {
    conditions.set('InSync', 'False', 'LockNotUsed', seen.failure)
    return
  }
  const { changed, new: added, removed } = seen.counts
  const message = `${changed} changed, ${added} new, ${removed} removed`
  if (changed > 0) conditions.set('InSync', 'False', 'ToolsChanged', message)
  else if (added > 0) conditions.set('InSync', 'False', 'NewTools', message)
  else if (removed > 0) conditions.set('InSync', 'False', 'ToolsMissing', message)
  else conditions.set('InSync', 'True', 'AllPinned', 'All definitions match the lock')
}
