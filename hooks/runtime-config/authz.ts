/**
 * Reads authorization policies or a decision point from an inline block, a ConfigMap or an MCPAuthzConfig.
 *
 * The formats spell their field names differently. An inline block uses camelCase. ConfigMaps and MCPAuthzConfigs use
 * the runtime envelope `{"version":"1.0","type":"cedarv1","cedar":{policies, entities_json, …}}` in snake_case. The
 * types httpv1 and authzenv1, with `pdp`, are external decision points. Parses every policy, because a server must
 * never start with an invalid policy.
 */
import { cedarViolations } from '../../schemas/cedar/index.ts'
import type { AuthzConfig, MCPAuthzConfig, RuntimeAuthz } from '../../schemas/index.ts'
import { parseEmbeddedJson } from '../base/json-bounds.ts'
import {
  type Fields,
  fieldsOf,
  filledTextOf,
  isFields,
  type KubeObject,
  definedFields,
} from '../base/kube.ts'
import {
  decisionPointPart,
  isPointType,
  type PointType,
  readDecisionPoint,
  ownDecisionPoint,
  pointIn,
} from './decision-point.ts'
import type { AnyContext } from '../sync/context.ts'
import type { PodNeeds } from './needs.ts'
import { failed, type ConfigPart } from '../sync/conditions.ts'

/** Reads the policies or the decision point of an MCPAuthzConfig. */
export function sharedAuthz(config: MCPAuthzConfig, needs: PodNeeds): ConfigPart<RuntimeAuthz> {
  const { type } = config.spec
  if (!isPointType(type)) return sharedPolicies(config)
  return pointPart(type, config.spec.config, needs, {
    reason: 'AuthzConfigRefNotValid',
    where: `MCPAuthzConfig ${config.metadata.name}`,
  })
}

/** Reads the policies of an MCPAuthzConfig. Fails unless the type is cedarv1. */
export function sharedPolicies(config: MCPAuthzConfig): ConfigPart<RuntimeAuthz> {
  if (config.spec.type !== 'cedarv1') {
    return failed(
      'AuthzConfigRefNotValid',
      `MCPAuthzConfig ${config.metadata.name} has type ${config.spec.type}; only cedarv1 is supported here${isPointType(config.spec.type) ? `: configure the decision point in authzConfig with type ${config.spec.type}` : ''}`,
    )
  }
  return cedarPart(config.spec.config, 'AuthzConfigRefNotValid', `MCPAuthzConfig ${config.metadata.name}`)
}

/** Reads a resource's own authzConfig; undefined if it has none. */
export function resourceAuthz(
  config: AuthzConfig | undefined,
  context: AnyContext,
  needs: PodNeeds,
): ConfigPart<RuntimeAuthz | undefined> {
  if (!config) return { value: undefined }
  const point = pointIn(config)
  if (point) return ownDecisionPoint(point, context, needs)
  return ownAuthz(config, config.configMap && context.configMap(config.configMap.name), needs)
}

/** Reads the policies of a resource's own authzConfig. `map` is the ConfigMap that authzConfig refers to. */
export function ownAuthz(
  config: AuthzConfig,
  map: KubeObject | undefined,
  needs: PodNeeds,
): ConfigPart<RuntimeAuthz> {
  const part = config.type === 'inline' ? inlineAuthz(config) : mapAuthz(config, map, needs)
  if (part.value?.type !== 'cedar') return part
  const { groupClaimName, roleClaimName } = config
  return {
    value: definedFields({
      ...part.value,
      groupClaimName: groupClaimName ?? part.value.groupClaimName,
      roleClaimName: roleClaimName ?? part.value.roleClaimName,
    }),
  }
}

function inlineAuthz({ inline, groupEntityType }: AuthzConfig): ConfigPart<RuntimeAuthz> {
  return validatedPart(
    {
      type: 'cedar',
      policies: inline?.policies ?? [],
      entitiesJson: inline?.entitiesJson ?? '[]',
      shadowPolicies: inline?.shadowPolicies,
      shadowReplaces: inline?.shadowReplaces,
      groupEntityType,
      primaryUpstreamProvider: inline?.primaryUpstreamProvider,
    },
    'AuthzConfigInvalid',
    'authzConfig.inline',
  )
}

function mapAuthz(
  { configMap, groupEntityType }: AuthzConfig,
  map: KubeObject | undefined,
  needs: PodNeeds,
): ConfigPart<RuntimeAuthz> {
  const key = configMap?.key ?? 'authz.json'
  const where = `ConfigMap ${configMap?.name}, key ${key}`
  const text = fieldsOf(map?.['data'])[key]
  if (typeof text !== 'string') return failed('AuthzConfigMapNotFound', `${where} does not exist`)
  const envelope = parseEmbeddedJson(text)
  if (!isFields(envelope)) return failed('AuthzConfigMapInvalid', `${where} is not a JSON object`)
  const { type } = envelope
  if (isPointType(type))
    return pointPart(type, fieldsOf(envelope['pdp']), needs, {
      reason: 'AuthzConfigMapInvalid',
      where: `${where}, pdp`,
    })
  if (type !== 'cedarv1')
    return failed('AuthzConfigMapInvalid', `${where} does not have type cedarv1, httpv1 or authzenv1`)
  const cedar = fieldsOf(envelope['cedar'])
  const named =
    cedar['group_entity_type'] === undefined ? { ...cedar, group_entity_type: groupEntityType } : cedar
  return cedarPart(named, 'AuthzConfigMapInvalid', where)
}

function pointPart(
  type: PointType,
  pdp: Fields,
  needs: PodNeeds,
  { reason, where }: { readonly reason: string; readonly where: string },
): ConfigPart<RuntimeAuthz> {
  const { value, violations } = readDecisionPoint(type, pdp)
  if (value) return { value: decisionPointPart(value, needs) }
  return failed(reason, `${where}: ${violations.map(({ path, message }) => `${path} ${message}`).join('; ')}`)
}

function cedarPart(
  config: Readonly<Record<string, unknown>>,
  reason: string,
  where: string,
): ConfigPart<RuntimeAuthz> {
  const policies = config['policies']
  if (
    !Array.isArray(policies) ||
    policies.length === 0 ||
    !policies.every((item) => typeof item === 'string')
  ) {
    return failed(reason, `${where}: policies must be a list of at least one policy`)
  }
  const { shadow_policies: shadow, shadow_replaces: replaces } = config
  if (shadow !== undefined && !isListOfTexts(shadow))
    return failed(reason, `${where}: shadow_policies must be a list of policies`)
  if (replaces !== undefined && typeof replaces !== 'boolean')
    return failed(reason, `${where}: shadow_replaces must be true or false`)
  if (replaces !== undefined && (shadow === undefined || shadow.length === 0))
    return failed(reason, `${where}: shadow_replaces requires shadow_policies`)
  return validatedPart(
    {
      type: 'cedar',
      policies,
      shadowPolicies: shadow,
      shadowReplaces: replaces,
      entitiesJson: filledTextOf(config['entities_json']) ?? '[]',
      groupEntityType: filledTextOf(config['group_entity_type']) ?? 'ServiceGroup',
      groupClaimName: filledTextOf(config['group_claim_name']),
      roleClaimName: filledTextOf(config['role_claim_name']),
      primaryUpstreamProvider: filledTextOf(config['primary_upstream_provider']),
    },
    reason,
    where,
  )
}

interface Candidate {
  readonly type: 'cedar'
  readonly policies: readonly string[]
  readonly shadowPolicies?: readonly string[] | undefined
  readonly shadowReplaces?: boolean | undefined
  readonly entitiesJson: string
  readonly groupEntityType: string
  readonly groupClaimName?: string | undefined
  readonly roleClaimName?: string | undefined
  readonly primaryUpstreamProvider?: string | undefined
}

function isListOfTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string')
}

function validatedPart(candidate: Candidate, reason: string, where: string): ConfigPart<RuntimeAuthz> {
  const violations = cedarViolations(
    candidate.policies,
    candidate.entitiesJson,
    candidate.shadowPolicies,
    candidate.shadowReplaces,
  )
  if (violations.length > 0) {
    const lines = violations.map(
      ({ path, message }) => `${path === 'entitiesJson' ? 'the entities' : path} ${message}`,
    )
    return failed(reason, `${where}: ${lines.join('; ')}`)
  }
  if (!/^[A-Za-z_][A-Za-z0-9_]{0,62}$/.test(candidate.groupEntityType)) {
    return failed(reason, `${where}: the group entity type must be an identifier without a namespace`)
  }
  return { value: definedFields({ ...candidate }) }
}
