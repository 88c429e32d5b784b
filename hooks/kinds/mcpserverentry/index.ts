/**
 * MCPServerEntry: declares a remote MCP endpoint as a member of a group. The sync only checks the entry and creates no
 * objects.
 */
import { specFailure } from '../../references/resolve.ts'
import { type SyncContext, observedFields } from '../../sync/context.ts'
import { reportProgress } from '../../sync/progress.ts'
import type { SyncResponse } from '../../sync/protocol.ts'
import { relatedRules } from '../../sync/rules.ts'
import {
  checkRemote,
  referencesNotReady,
  remoteObjects,
  remoteRelatedKinds,
  remoteViolations,
} from '../common/remote-member.ts'
import type { KindHooks } from '../kind-hooks.ts'

const field = 'spec.remoteUrl'

export const mcpServerEntry: KindHooks<'MCPServerEntry'> = {
  kind: 'MCPServerEntry',
  childKinds: [],
  relatedKinds: remoteRelatedKinds,
  validate: ({ spec }, settings) => remoteViolations(spec, [{ field, url: spec.remoteUrl }], settings),
  customize: ({ parent }) => relatedRules(parent, remoteObjects(parent)),
  sync,
}

function sync(context: SyncContext<'MCPServerEntry'>): SyncResponse {
  const { conditions, spec } = context
  const specFailed = specFailure(context.violations, 'ConfigInvalid')
  if (!specFailed) {
    checkRemote(context, [{ field, url: spec.remoteUrl }], {
      type: 'RemoteURLValidated',
      valid: 'RemoteURLValid',
      invalid: 'RemoteURLInvalid',
      message: 'The address is allowed',
    })
  }
  // Lists the individual failures instead of the summary, because the reason of a failure determines whether to wait or
  // to report a problem.
  const failures = specFailed ? [specFailed] : conditions.list().filter(({ status }) => status === 'False')
  const valid = failures.length === 0
  conditions.check(
    'Valid',
    valid ? undefined : (specFailed ?? referencesNotReady('entry')),
    'ConfigValid',
    'The entry is usable',
  )
  reportProgress(context, { failures })
  return { status: { phase: valid ? 'Valid' : 'Failed', ...observedFields(context) }, children: [] }
}
