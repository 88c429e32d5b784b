/**
 * VirtualMCPCompositeToolDefinition: a workflow that several virtual servers can offer. The definition's sync checks
 * the workflow and lists the servers that use it.
 */
import {
  formatViolations,
  type Violation,
  type VirtualMCPCompositeToolDefinition,
} from '../../../schemas/index.ts'
import { workflowWarnings, workflowViolations } from '../../../schemas/workflow/index.ts'
import { type SyncContext, observedFields } from '../../sync/context.ts'
import type { SyncResponse } from '../../sync/protocol.ts'
import { kindsReferringTo, referrersOf } from '../referrers.ts'
import type { KindHooks } from '../kind-hooks.ts'
import { ownRelatedKinds, relatedRules } from '../../sync/rules.ts'
import { reportProgress } from '../../sync/progress.ts'

const kind = 'VirtualMCPCompositeToolDefinition'
const related = kindsReferringTo(kind)

export const compositeToolDefinition: KindHooks<'VirtualMCPCompositeToolDefinition'> = {
  kind,
  childKinds: [],
  relatedKinds: ownRelatedKinds(related),
  validate: definitionViolations,
  warnings: ({ spec }) => workflowWarnings(spec),
  customize: ({ parent }) => relatedRules(parent, { kinds: related }),
  sync,
}

function sync(context: SyncContext<'VirtualMCPCompositeToolDefinition'>): SyncResponse {
  const { violations, conditions } = context
  const { count, workloads } = referrersOf(context, kind)
  const failure =
    violations.length > 0
      ? { reason: reasonOf(violations), message: formatViolations(violations) }
      : undefined
  conditions.check('WorkflowValidated', failure, 'ValidationSuccess', 'The workflow is valid')
  conditions.check(
    'Ready',
    failure && { reason: 'WorkflowNotReady', message: failure.message },
    'WorkflowReady',
    'The workflow is usable',
  )
  reportProgress(context, { failures: failure ? [failure] : [] })
  return {
    status: {
      validationStatus: failure ? 'Invalid' : 'Valid',
      validationErrors: violations.map((violation) => formatViolations([violation])),
      referencingVirtualServers: workloads.map(({ name }) => name),
      referenceCount: count,
      ...observedFields(context),
    },
    children: [],
  }
}

/** Condition reasons, keyed by the violated rule. The first reason that applies is reported. */
const reasons = { cycle: 'DependencyCycle', template: 'TemplateInvalid', schema: 'SchemaInvalid' } as const

function reasonOf(violations: readonly Violation[]): string {
  const violated = Object.entries(reasons).find(([rule]) => violations.some((one) => one.rule === rule))
  return violated?.[1] ?? 'ValidationFailed'
}

function definitionViolations({ spec }: VirtualMCPCompositeToolDefinition): Violation[] {
  return workflowViolations(spec, 'spec')
}
