/** The references of an MCPServerEntry. It has no configuration of its own, so each reference only sets its condition. */
import { configReferences, groupReference } from '../../references/reference.ts'
import type { SyncContext } from '../../sync/context.ts'

interface EntryTarget {
  readonly context: SyncContext<'MCPServerEntry'>
}

const externalAuthCondition = 'ExternalAuthConfigValidated'

export const entryReferences = {
  group: groupReference({ valid: 'GroupRefIsValid', message: 'The group exists' }),
  externalAuth: configReferences<EntryTarget>()({
    field: 'spec.externalAuthConfigRef',
    kind: 'MCPExternalAuthConfig',
    condition: {
      type: externalAuthCondition,
      valid: 'AuthConfigValid',
      notFound: 'AuthConfigNotFound',
      notValid: 'InvalidExternalAuthConfig',
      message: 'The MCPExternalAuthConfig exists and is valid',
    },
    toConfig: () => ({ value: undefined }),
    otherwise({ context }) {
      context.conditions.set(externalAuthCondition, 'True', 'AuthConfigNotConfigured', 'None is referenced')
      return { value: undefined }
    },
  }),
} as const
