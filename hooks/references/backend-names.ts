/** Backends that the spec of a virtual server names, and the workflows that it refers to. */
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

/** The parts of the spec that name backends; may be of any state. */
interface NamingSpec {
  readonly outgoingAuth?: unknown
  readonly incomingAuth?: unknown
  readonly config?: NamingConfig | null | undefined
}

/** Finds a VirtualMCPCompositeToolDefinition by name. */
export type FindDefinition = (name: string) => KubeObject | undefined

/**
 * One violation for each name in the webhooks of an MCPWebhookConfig that is not among `known`. Told apart from those of the
 * spec: other servers may share it, so that a name can be right there.
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

/** One violation for each name that is not among `known`. Workflows that `find` does not know are not checked. */
export function unknownBackendsOf(
  { outgoingAuth, incomingAuth, config }: NamingSpec,
  known: readonly string[],
  find: FindDefinition = () => undefined,
): readonly UnknownBackend[] {
  // config.outgoingAuth is superseded: nothing reads it.
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

/** The same of the server's own policies. Those of an MCPAuthzConfig are shared: they may be about other servers. */
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
 * Sets the condition when anything names backends. `known` are the names of all backends, usable or not. An unknown name
 * never stops the sync, because the backend may follow.
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
    'Every backend that the spec names exists',
  )
}
