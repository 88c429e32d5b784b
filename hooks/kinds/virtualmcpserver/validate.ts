/**
 * VirtualMCPServer: checks of the object alone that need code.
 *
 * Nothing about other objects, and not the http issuer: those are found at reconcile.
 * Source: docs/specification/virtual-server.md#errors, Errors and Limits.
 */
import {
  addressViolation,
  reservedOverrides,
  reservedTools,
  type Violation,
  type VirtualMCPServer,
  type VirtualMCPServerSpec,
} from '../../../schemas/index.ts'
import { CheckBudget, workflowViolations } from '../../../schemas/workflow/index.ts'
import { authzViolations } from '../common/checks/policies.ts'
import { overrideViolations } from '../common/checks/tools.ts'
import { podTemplateViolations } from '../../children/pod-template.ts'
import { authServerViolations } from '../../externalauth/index.ts'

export function virtualServerViolations({ spec }: VirtualMCPServer): Violation[] {
  return [
    ...podTemplateViolations(spec.podTemplateSpec),
    ...authzViolations(spec.incomingAuth.authzConfig, 'spec.incomingAuth.authzConfig'),
    ...(spec.authServerConfig ? authServerViolations(spec.authServerConfig, 'spec.authServerConfig') : []),
    ...pairingViolations(spec),
    ...aggregationViolations(spec),
    ...optimizerViolations(spec),
    ...compositeViolations(spec),
    ...addressViolations(spec),
  ]
}

/** Incoming authentication, policies and the embedded server must fit each other. */
function pairingViolations({ incomingAuth, authServerConfig: server }: VirtualMCPServerSpec): Violation[] {
  const problems: Violation[] = []
  if (server && incomingAuth.type !== 'oidc') {
    problems.push({
      path: 'spec.incomingAuth.type',
      message: 'must be oidc with authServerConfig, which issues the tokens',
    })
  }
  const inline = incomingAuth.authzConfig?.inline?.primaryUpstreamProvider
  if (inline === undefined) return problems
  const path = 'spec.incomingAuth.authzConfig.inline.primaryUpstreamProvider'
  if (!server) problems.push({ path, message: 'needs spec.authServerConfig' })
  else if (!server.upstreamProviders.some(({ name }) => name === inline)) {
    problems.push({ path, message: 'must be the name of one of authServerConfig.upstreamProviders' })
  }
  return problems
}

function aggregationViolations({ config, embeddingServerRef }: VirtualMCPServerSpec): Violation[] {
  const path = 'spec.config.aggregation'
  // The reference switches tool search on.
  const reserved = reservedTools({
    optimizer: config?.optimizer ?? embeddingServerRef,
    codeMode: config?.codeMode,
  })
  return [
    ...(config?.aggregation?.tools ?? []).flatMap(({ overrides }, index) =>
      overrideViolations(overrides, `${path}.tools[${index}].overrides`),
    ),
    ...reservedOverrides(config?.aggregation, reserved, path),
  ]
}

function optimizerViolations({ config, embeddingServerRef }: VirtualMCPServerSpec): Violation[] {
  if (!config?.optimizer || embeddingServerRef || config.optimizer.embeddingService) return []
  return [
    {
      path: 'spec.embeddingServerRef',
      message: 'is required with config.optimizer, unless it names an embeddingService',
    },
  ]
}

function compositeViolations({ config }: VirtualMCPServerSpec): Violation[] {
  const budget = new CheckBudget()
  return (config?.compositeTools ?? []).flatMap((tool, index) =>
    workflowViolations(tool, `spec.config.compositeTools[${index}]`, budget),
  )
}

/** Static backends and the embedding service may be anywhere but where no honest server is. */
function addressViolations({ config }: VirtualMCPServerSpec): Violation[] {
  const named = [
    ...(config?.backends ?? []).map(({ url }, index) => [`spec.config.backends[${index}].url`, url] as const),
    ['spec.config.optimizer.embeddingService', config?.optimizer?.embeddingService ?? ''] as const,
  ]
  return named.flatMap(([path, url]) => {
    const message = url === '' ? undefined : addressViolation(url, 'any')
    return message === undefined ? [] : [{ path, message }]
  })
}
