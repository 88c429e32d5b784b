/**
 * Validates a virtual server's files before they are written, because the runtime rejects a file that violates its
 * schema. An error in one backend excludes only that backend, as in the runtime.
 */
import {
  formatViolations,
  type input,
  validateRuntime,
  type Violation,
  withoutBroken,
} from '../../../../schemas/index.ts'
import type { SyncFailure } from '../../../sync/conditions.ts'
import type { SyncContext } from '../../../sync/context.ts'
import { specFailure } from '../../../references/resolve.ts'
import type { ResolvedBackend } from './backends.ts'

/** The mounted ConfigMap and its file for the server. */
export const configDirectory = '/etc/vmcp-config'
export const configFile = 'config.yaml'

/** Contents of the ConfigMap before serialization. */
export interface Files {
  readonly config: input.VmcpFile
  readonly authServer: input.AuthServerFile | undefined
}

export interface CheckedFiles {
  /** The files; undefined after a failure that affects more than individual backends. */
  readonly files: Files | undefined
  readonly backends: readonly ResolvedBackend[]
  readonly failures: readonly SyncFailure[]
}

/** Sets the condition Valid to False when the files are invalid. */
export function checkFiles(
  { conditions }: SyncContext<'VirtualMCPServer'>,
  files: Files,
  backends: readonly ResolvedBackend[],
): CheckedFiles {
  const { authServer } = files
  const found = validateRuntime('vmcp', files.config).violations
  const remaining = found.length > 0 ? withoutBroken(files.config, found) : undefined
  const config = remaining?.document ?? files.config
  const violations: readonly Violation[] = [
    ...(remaining ? validateRuntime('vmcp', config).violations : found),
    ...(authServer ? validateRuntime('authserver', authServer).violations : []),
  ]
  const failure = specFailure(violations, 'ConfigInvalid')
  if (failure) {
    const message = `The generated configuration is invalid: ${formatViolations(violations)}`
    conditions.set('Valid', 'False', failure.reason, message)
    return { files: undefined, backends, failures: [failure] }
  }
  const excluded = new Map(remaining?.excluded.map(({ name, problems: lines }) => [name, lines.join('; ')]))
  return {
    files: { config, authServer },
    backends: backends.map((resolved) => {
      const message = excluded.get(resolved.name)
      if (message === undefined) return resolved
      return { ...resolved, backend: undefined, failure: { reason: 'ConfigInvalid', message } }
    }),
    failures: [],
  }
}
