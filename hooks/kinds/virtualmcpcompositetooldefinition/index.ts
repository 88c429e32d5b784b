/**
 * VirtualMCPCompositeToolDefinition: a workflow that several virtual servers can offer. Its sync checks the workflow and
 * says which servers use it.
 */
import { formatViolations, type Violation } from '../../../schemas/index.ts'
import { SyncContext } from '../../sync/context.ts'
import type { SyncRequest, SyncResponse } from '../../sync/protocol.ts'
import { referrersOf, workflowReferences } from '../../references/referrers.ts'
import type { KindHooks } from '../../kind-hooks.ts'
import { ownRelatedKinds, relatedRules } from '../../sync/rules.ts'
import type { HookSettings } from '../../settings.ts'
import { observedFields } from '../../sync/status.ts'

const related = ['VirtualMCPServer'] as const

export const compositeToolDefinition: KindHooks = {
  kind: 'VirtualMCPCompositeToolDefinition',
  childKinds: [],
  relatedKinds: ownRelatedKinds(related),
  customize: ({ parent }) => relatedRules(parent, { kinds: related }),
  sync,
}

function sync(request: SyncRequest, settings: HookSettings): SyncResponse {
  const context = new SyncContext(request, settings, 'VirtualMCPCompositeToolDefinition')
  const { problems, conditions } = context
  const { count, workloads } = referrersOf(context.name, workflowReferences, (kind) => context.members(kind))
  const failure =
    problems.length > 0 ? { reason: reasonOf(problems), message: formatViolations(problems) } : undefined
  conditions.check('WorkflowValidated', failure, 'ValidationSuccess', 'The workflow is valid')
  conditions.check(
    'Ready',
    failure && { reason: 'WorkflowNotReady', message: failure.message },
    'WorkflowReady',
    'The workflow can be used',
  )
  return {
    status: {
      validationStatus: failure ? 'Invalid' : 'Valid',
      validationErrors: problems.map((problem) => formatViolations([problem])),
      referencingVirtualServers: workloads.map(({ name }) => name),
      referenceCount: count,
      ...observedFields(context),
    },
    children: [],
  }
}

function reasonOf(problems: readonly Violation[]): string {
  const some = (pattern: RegExp) => problems.some(({ message }) => pattern.test(message))
  if (some(/in a circle/)) return 'DependencyCycle'
  if (some(/^is not a template/)) return 'TemplateInvalid'
  if (some(/JSON Schema/)) return 'SchemaInvalid'
  return 'ValidationFailed'
}
