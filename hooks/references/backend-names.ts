/** Checks the backend names in a virtual server's spec and in the workflows that it refers to. */
import {
  below,
  formatViolations,
  type NamingSettings,
  type UnknownBackend,
  unknownBackends,
  type WorkflowDefinition,
} from '../../schemas/index.ts'
import { namedOrigins } from '../../schemas/cedar/index.ts'
import { fieldsOf, type KubeObject, listOf } from '../base/kube.ts'
import type { AnyContext } from '../sync/context.ts'

type NamingConfig = Pick<
  NamingSettings,
  'aggregation' | 'operational' | 'compositeTools' | 'quotas' | 'costs' | 'guardrails'
> & {
  readonly compositeToolRefs?: unknown
}

/** The parts of the spec that contain backend names. These parts may be invalid. */
interface NamingSpec {
  readonly outgoingAuth?: unknown
  readonly incomingAuth?: unknown
  readonly config?: NamingConfig | null | undefined
}

/** Finds a VirtualMCPCompositeToolDefinition by name. */
export type FindDefinition = (name: string) => KubeObject | undefined

/**
 * Returns a violation for each unknown name in the webhooks of an MCPWebhookConfig. Returns these violations
 * separately, because the name may be valid for another server that shares the config.
 */
export function unknownWebhookBackends(
  reference: unknown,
  known: readonly string[],
  find: (name: string) => KubeObject | undefined,
): readonly UnknownBackend[] {
  const { name } = fieldsOf(reference)
  const shared = typeof name === 'string' ? find(name) : undefined
  if (typeof name !== 'string' || shared === undefined) return []
  const webhookConfig = {
    path: 'spec.webhookConfigRef.name',
    title: `MCPWebhookConfig ${name}`,
    webhooks: shared['spec'],
  }
  return unknownBackends({ webhookConfig }, known)
}

/** Returns a violation for each name that is not in `known`. Skips workflows that `find` does not return. */
export function unknownBackendsOf(
  { outgoingAuth, incomingAuth, config }: NamingSpec,
  known: readonly string[],
  find: FindDefinition = () => undefined,
): readonly UnknownBackend[] {
  // Skips config.outgoingAuth, which is superseded and ignored.
  const { aggregation, operational, compositeTools, compositeToolRefs, quotas, costs, guardrails } =
    config ?? {}
  const definitions = definitionsOf(compositeToolRefs, find)
  return [
    ...unknownBackends({ outgoingAuth }, known, 'spec'),
    ...unknownPolicyBackends({ incomingAuth }, known),
    ...unknownBackends(
      { aggregation, operational, compositeTools, definitions, quotas, costs, guardrails },
      known,
      'spec.config',
    ),
  ]
}

/**
 * Returns a violation for each unknown name in the server's own policies. Policies from an MCPAuthzConfig are shared
 * and may refer to other servers.
 */
export function unknownPolicyBackends(
  { incomingAuth }: Pick<NamingSpec, 'incomingAuth'>,
  known: readonly string[],
): readonly UnknownBackend[] {
  const inline = fieldsOf(fieldsOf(fieldsOf(incomingAuth)['authzConfig'])['inline'])
  const texts = (member: string) => listOf(inline[member]).filter((text) => typeof text === 'string')
  const { entitiesJson } = inline
  const origins = namedOrigins(
    {
      policies: texts('policies'),
      shadowPolicies: texts('shadowPolicies'),
      ...(typeof entitiesJson === 'string' && { entitiesJson }),
    },
    'spec.incomingAuth.authzConfig.inline',
  )
  return unknownBackends({ origins }, known)
}

function definitionsOf(references: unknown, find: FindDefinition): readonly WorkflowDefinition[] {
  return listOf(references).flatMap((reference, i) => {
    const { name } = fieldsOf(reference)
    const definition = typeof name === 'string' ? find(name) : undefined
    if (typeof name !== 'string' || definition === undefined) return []
    return {
      path: below(below('spec.config.compositeToolRefs', i), 'name'),
      title: `VirtualMCPCompositeToolDefinition ${name}`,
      steps: fieldsOf(definition['spec'])['steps'],
    }
  })
}

/**
 * Sets the condition when the spec contains backend names. `known` contains the names of all backends, usable or not.
 * An unknown name never stops the sync, because the backend may be created later.
 */
export function checkBackendNames(
  { conditions }: Pick<AnyContext, 'conditions'>,
  known: readonly string[],
  unknownAmong: (known: readonly string[]) => readonly UnknownBackend[],
): void {
  if (unknownAmong([]).length === 0) return
  const unknown = unknownAmong(known)
  const message = unknown.map((violation) => formatViolations([violation])).join('; ')
  conditions.check(
    'BackendNamesValidated',
    unknown.length > 0 ? { reason: 'UnknownBackend', message } : undefined,
    'AllKnown',
    'All backends in the spec exist',
  )
}
