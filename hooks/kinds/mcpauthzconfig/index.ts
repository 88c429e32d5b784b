/** MCPAuthzConfig: authorization policies shared by several servers. */
import { configKind } from '../common/config-kind.ts'
import { authzReferences } from '../../references/referrers.ts'
import {
  authzConfigBundles,
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
  caBundles: authzConfigBundles,
})
