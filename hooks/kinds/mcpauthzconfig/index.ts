/** MCPAuthzConfig: authorization policies that several servers share. */
import { configKind } from '../config-kind.ts'
import {
  authzConfigBundles,
  authzConfigFailure,
  authzConfigSecrets,
  authzConfigViolations,
  authzConfigWarnings,
} from './validate.ts'

export const mcpAuthzConfig = configKind({
  kind: 'MCPAuthzConfig',
  validate: authzConfigViolations,
  warnings: authzConfigWarnings,
  validReason: 'ConfigValid',
  invalidReason: 'ConfigInvalid',
  secrets: authzConfigSecrets,
  caBundles: authzConfigBundles,
  check: authzConfigFailure,
})
