/**
 * VirtualMCPServer: checks of the object alone that need code.
 *
 * Nothing about other objects, and not the http issuer: those are found at reconcile.
 * Source: spec document 3, Errors and Limits.
 */
import type { Violation, VirtualMCPServer, VirtualMCPServerSpec } from '../../../schemas/index.ts'
import { workflowProblems } from '../../../schemas/workflow/index.ts'
import { authzProblems } from '../../admission/authz.ts'
import { overrideProblems } from '../../admission/tools.ts'
import { podTemplateProblems } from '../../children/pod-template.ts'
import { authServerProblems } from '../../externalauth/index.ts'

export function virtualServerProblems({ spec }: VirtualMCPServer): Violation[] {
  return [
    ...podTemplateProblems(spec.podTemplateSpec),
    ...authzProblems(spec.incomingAuth.authzConfig, 'spec.incomingAuth.authzConfig'),
    ...(spec.authServerConfig ? authServerProblems(spec.authServerConfig, 'spec.authServerConfig') : []),
    ...pairingProblems(spec),
    ...aggregationProblems(spec),
    ...optimizerProblems(spec),
    ...compositeProblems(spec),
  ]
}

/** Incoming authentication, policies and the embedded server must fit each other. */
function pairingProblems({ incomingAuth, authServerConfig: server }: VirtualMCPServerSpec): Violation[] {
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

function aggregationProblems({ config }: VirtualMCPServerSpec): Violation[] {
  return (config?.aggregation?.tools ?? []).flatMap(({ overrides }, index) =>
    overrideProblems(overrides, `spec.config.aggregation.tools[${index}].overrides`),
  )
}

function optimizerProblems({ config, embeddingServerRef }: VirtualMCPServerSpec): Violation[] {
  if (!config?.optimizer || embeddingServerRef || config.optimizer.embeddingService) return []
  return [
    {
      path: 'spec.embeddingServerRef',
      message: 'is required with config.optimizer, unless it names an embeddingService',
    },
  ]
}

function compositeProblems({ config }: VirtualMCPServerSpec): Violation[] {
  return (config?.compositeTools ?? []).flatMap((tool, index) =>
    workflowProblems(tool, `spec.config.compositeTools[${index}]`),
  )
}
