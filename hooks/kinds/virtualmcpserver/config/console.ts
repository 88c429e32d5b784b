/** A virtual server's console: its settings in the file, its client secret, and its port in the pod and the Service. */
import { cedarViolations, cedarWarnings } from '../../../../schemas/cedar/index.ts'
import {
  consoleSecretVariable,
  type input,
  type Violation,
  type VirtualMCPServerSpec,
} from '../../../../schemas/index.ts'
import type { SyncFailure } from '../../../sync/conditions.ts'
import type { SyncContext } from '../../../sync/context.ts'
import type { PodNeeds } from '../../../runtime-config/needs.ts'

/** Port of the MCP endpoint in the pod, which the console cannot use. */
export const mcpPort = 4483

type Context = SyncContext<'VirtualMCPServer'>

/**
 * Returns the console's settings. In a pod, the console listens on all interfaces and links to `address`, the server's
 * address.
 */
export function consolePart(
  console: input.VirtualMCPConfig['console'],
  address: string,
): input.VmcpFile['console'] {
  return console && { ...console, host: console.host ?? '0.0.0.0', mcpUrl: console.mcpUrl ?? address }
}

/** Adds the client secret to the environment, restarts the pods when it changes, and reports it when it is missing. */
export function checkConsoleSecret(context: Context, needs: PodNeeds): SyncFailure | undefined {
  const { console } = context.parent.spec.config ?? {}
  const secret = console?.enabled ? console.auth?.clientSecretRef : undefined
  if (!secret) return undefined
  needs.secretEnv(consoleSecretVariable, secret)
  needs.revision('console', context.secretRevision([secret]))
  const field = 'spec.config.console.auth.clientSecretRef'
  return context.missingSecretsFailure([secret], 'SecretNotFound', field)
}

export function consolePorts({ config }: VirtualMCPServerSpec): readonly { name: string; port: number }[] {
  return config?.console?.enabled ? [{ name: 'console', port: config.console.port }] : []
}

/** Checks that the console's port is free and that its policies can be parsed. */
export function consoleViolations(spec: VirtualMCPServerSpec): Violation[] {
  const { policies = [], entitiesJson = '[]' } = spec.config?.console?.authz ?? {}
  const policyViolations = cedarViolations(policies, entitiesJson).map(({ path, message }) => ({
    path: `spec.config.console.authz.${path}`,
    message,
  }))
  const isPortTaken = consolePorts(spec).some((console) => console.port === mcpPort)
  return [
    ...(isPortTaken
      ? [{ path: 'spec.config.console.port', message: `must not be ${mcpPort}, which is the MCP port` }]
      : []),
    ...policyViolations,
  ]
}

/** Warns about unknown names in the console's policies. */
export function consoleWarnings({ config }: VirtualMCPServerSpec, name: string): string[] {
  const authz = config?.console?.authz
  if (!authz) return []
  return cedarWarnings({ ...authz, consoleOf: config.name ?? name }).map(
    (line) => `config.console.authz.${line}`,
  )
}
