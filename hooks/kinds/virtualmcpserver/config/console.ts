/**
 * The console of a virtual server: its part of the file, the Secret of its client, and its port in pod and Service.
 */
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
import { port } from '../paths.ts'

type Context = SyncContext<'VirtualMCPServer'>

/** In a pod the console is reached through the Service, and so is the server that it tells of; `address` is the server's. */
export function consolePart(
  console: input.VirtualMCPConfig['console'],
  address: string,
): input.VmcpFile['console'] {
  return console && { ...console, host: console.host ?? '0.0.0.0', mcpUrl: console.mcpUrl ?? address }
}

/** Puts the client's secret into the environment, rolls the pods when it changes, and says when it is not there. */
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

/** A pod and a Service have each port once, and policies must be readable. */
export function consoleViolations(spec: VirtualMCPServerSpec): Violation[] {
  const { policies = [], entitiesJson = '[]' } = spec.config?.console?.authz ?? {}
  const unusable = cedarViolations(policies, entitiesJson).map(({ path, message }) => ({
    path: `spec.config.console.authz.${path}`,
    message,
  }))
  const isTaken = consolePorts(spec).some((console) => console.port === port)
  return [
    ...(isTaken
      ? [{ path: 'spec.config.console.port', message: `must not be ${port}, the port of MCP` }]
      : []),
    ...unusable,
  ]
}

/** Names in the policies of the console that nothing has. */
export function consoleWarnings({ config }: VirtualMCPServerSpec, name: string): string[] {
  const authz = config?.console?.authz
  if (!authz) return []
  return cedarWarnings({ ...authz, consoleOf: config.name ?? name }).map(
    (line) => `config.console.authz.${line}`,
  )
}
