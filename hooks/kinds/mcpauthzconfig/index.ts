/** MCPAuthzConfig: authorization policies shared by several servers. */
import { configKind } from '../common/config-kind.ts'
import { authzReferences } from '../../references/referrers.ts'
import {
  authzConfigBundle,
  authzConfigSecrets,
  authzConfigViolations,
  authzConfigWarnings,
} from './validate.ts'

export const mcpAuthzConfig = configKind({
  kind: 'MCPAuthzConfig',
  referenceFields: ['authzConfigRef'],
  validate: authzConfigViolations,
  warnings: authzConfigWarnings,
  validReason: 'ConfigValid',
  invalidReason: 'ConfigInvalid',
  references: authzReferences,
  secrets: authzConfigSecrets,
  caBundle: authzConfigBundle,
})
