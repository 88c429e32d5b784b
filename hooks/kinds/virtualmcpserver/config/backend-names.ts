/**
 * Names of backends in the spec that no backend has: a condition, never a reason to stop. The member may be created
 * later.
 */
import { formatViolations } from '../../../../schemas/index.ts'
import { unknownBackendsOf } from '../../../references/backend-names.ts'
import type { SyncContext } from '../../../sync/context.ts'

/** Sets the condition where the spec names backends. `known` are the names of all backends, usable or not. */
export function checkBackendNames(context: SyncContext<'VirtualMCPServer'>, known: readonly string[]): void {
  const { spec } = context.parent
  const find = (name: string) => context.find('VirtualMCPCompositeToolDefinition', name)
  if (unknownBackendsOf(spec, [], find).length === 0) return
  const unknown = unknownBackendsOf(spec, known, find)
  const message = unknown.map((violation) => formatViolations([violation])).join('; ')
  context.conditions.check(
    'BackendNamesValidated',
    unknown.length > 0 ? { reason: 'UnknownBackend', message } : undefined,
    'AllKnown',
    'Every backend that the spec names exists',
  )
}
