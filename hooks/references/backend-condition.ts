/** The condition about names of backends that no backend has: never a reason to stop, for the backend may come later. */
import { formatViolations, type UnknownBackend } from '../../schemas/index.ts'
import type { AnyContext } from '../sync/context.ts'

/** Set where anything names backends. `known` are the names of all backends, usable or not. */
export function checkBackendNames(
  { conditions }: Pick<AnyContext, 'conditions'>,
  known: readonly string[],
  unknownAmong: (known: readonly string[]) => readonly UnknownBackend[],
): void {
  if (unknownAmong([]).length === 0) return
  const unknown = unknownAmong(known)
  const message = unknown.map((violation) => formatViolations([violation])).join('; ')
  conditions.check(
    'BackendNamesValidated',
    unknown.length > 0 ? { reason: 'UnknownBackend', message } : undefined,
    'AllKnown',
    'Every backend that the spec names exists',
  )
}
