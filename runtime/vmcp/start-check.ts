/**
 * The checks of a configuration that need more than its text: variables that it names, files, strategies. The server
 * makes them before it starts and before it takes a changed file, `gatehouse vmcp validate` makes them alone.
 */
import { existsSync } from 'node:fs'
import { GatehouseError } from '../../schemas/index.ts'
import { workflowWarnings } from '../../schemas/workflow/index.ts'
import { type VmcpConfig, vmcpSwitchProblems } from '../config/index.ts'
import { type AuthServerFacts, type IncomingConfig, oidcProblems } from '../incoming/index.ts'
import { silentLog } from '../net/index.ts'
import { telemetryProblems } from '../observe/index.ts'
import type { UpstreamTokens } from '../outgoing/index.ts'
import { checkPolicies } from '../policy/index.ts'
import { codeModeProblems } from './codemode/index.ts'
import { embeddedProblems } from './embedded-auth.ts'
import { incomingConfig } from './incoming-config.ts'
import { optimizerProblems } from './optimizer/index.ts'
import { makeOutgoingAuth } from './outgoing-auth.ts'
import { workflowFaults } from './workflows/index.ts'

type Environment = Readonly<Record<string, string | undefined>>

/**
 * Throws INVALID_CONFIG naming every fault that would keep the server from starting. `authServer` are the settings of
 * the embedded authorization server; its tokens come from `upstreamTokens`, for checks those of `providersOnly` will do.
 */
export function checkStart(
  config: VmcpConfig,
  env: Environment,
  upstreamTokens?: UpstreamTokens,
  authServer?: AuthServerFacts,
): void {
  const switches = vmcpSwitchProblems(env)
  const auth = switches.length === 0 ? makeOutgoingAuth(env, upstreamTokens, silentLog) : undefined
  const problems = [
    ...switches,
    ...incomingProblems(config, env),
    ...(authServer ? embeddedProblems(config, authServer) : []),
    ...policyProblems(config),
    ...(auth?.problems(config) ?? []),
    ...telemetryProblems(config.telemetry, env),
    ...fileProblems(config),
    ...optimizerProblems(config.optimizer, env),
    ...codeModeProblems(config.codeMode),
    ...workflowFaults(config.compositeTools),
  ]
  void auth?.close()
  if (problems.length === 0) return
  const lines = problems.map((line) => `  - ${line}`)
  throw new GatehouseError('INVALID_CONFIG', { detail: `invalid configuration:\n${lines.join('\n')}` })
}

/** What is legal in a configuration and seldom meant; one line for each. */
export function startWarnings({ compositeTools = [] }: VmcpConfig): string[] {
  return compositeTools.flatMap(workflowWarnings).map((line) => `compositeTools: ${line}`)
}

function incomingProblems(config: VmcpConfig, env: Environment): string[] {
  let incoming: IncomingConfig
  try {
    incoming = incomingConfig(config, env)
  } catch (error) {
    return [error instanceof Error ? error.message : String(error)]
  }
  return incoming.type === 'oidc'
    ? oidcProblems(incoming.oidc).map((line) => `incomingAuth.oidc.${line}`)
    : []
}

function fileProblems(config: VmcpConfig): string[] {
  return (config.backends ?? []).flatMap(({ caBundlePath }, i) =>
    caBundlePath === undefined || existsSync(caBundlePath)
      ? []
      : [`backends[${i}].caBundlePath: there is no such file`],
  )
}

function policyProblems({ incomingAuth }: VmcpConfig): string[] {
  const { authz } = incomingAuth
  if (authz?.type !== 'cedar') return []
  return checkPolicies(authz.policies ?? [], authz.entitiesJson ?? '[]').map(
    ({ path, message }) => `incomingAuth.authz.${path}: ${message}`,
  )
}
