/**
 * Checks an MCPAuthzConfig, whose config is free-form in the schema.
 *
 * For cedarv1, every policy and every entity must parse. httpv1 and authzenv1 configure an external decision point for
 * MCPServer and MCPRemoteProxy. A VirtualMCPServer configures its own decision point in authzConfig and reports a
 * shared decision point in a condition.
 */
import {
  own,
  type CABundleSource,
  type MCPAuthzConfig,
  type SecretRef,
  type Violation,
} from '../../../schemas/index.ts'
import { cedarViolations, cedarWarnings } from '../../../schemas/cedar/index.ts'
import type { Fields } from '../../base/kube.ts'
import type { SyncFailure } from '../../sync/conditions.ts'
import type { SyncContext } from '../../sync/context.ts'
import {
  decisionPointBundle,
  decisionPointPairFailure,
  decisionPointSecrets,
  isPointType,
  type PointType,
  readDecisionPoint,
  type TypedPoint,
} from '../../runtime-config/decision-point.ts'
import { decisionPointWarnings } from '../common/checks/policies.ts'

const checks: Readonly<Record<string, (config: Fields) => Violation[]>> = {
  cedarv1,
  httpv1: pointOf('httpv1'),
  authzenv1: pointOf('authzenv1'),
}

export function authzConfigViolations({ spec }: MCPAuthzConfig): Violation[] {
  const check = own(checks, spec.type)
  if (check) return check(spec.config)
  return [{ path: 'spec.type', message: `is not a known type; use one of ${Object.keys(checks).join(', ')}` }]
}

const cedarText = [
  'primary_upstream_provider',
  'group_claim_name',
  'role_claim_name',
  'group_entity_type',
  'entities_json',
]

function cedarv1(config: Fields): Violation[] {
  const unknown = unknownKeys(
    config,
    ['policies', 'shadow_policies', 'shadow_replaces', ...cedarText],
    'spec.config',
  )
  const wrong = cedarText
    .filter((key) => config[key] !== undefined && typeof config[key] !== 'string')
    .map((key) => ({ path: `spec.config.${key}`, message: 'must be a string' }))
  const { policies, entities_json: entities, group_entity_type: groupType } = config
  const { shadow_policies: shadow = [], shadow_replaces: replaces } = config
  if (replaces !== undefined && typeof replaces !== 'boolean')
    wrong.push({ path: 'spec.config.shadow_replaces', message: 'must be true or false' })
  const hasShadow = Array.isArray(shadow) && shadow.every((item) => typeof item === 'string')
  if (!hasShadow) wrong.push({ path: 'spec.config.shadow_policies', message: 'must be a list of policies' })
  else if (replaces !== undefined && shadow.length === 0)
    wrong.push({ path: 'spec.config.shadow_policies', message: 'is required with shadow_replaces' })
  if (
    !Array.isArray(policies) ||
    policies.length === 0 ||
    !policies.every((item) => typeof item === 'string')
  ) {
    return [
      ...unknown,
      ...wrong,
      { path: 'spec.config.policies', message: 'must be a list of at least one policy' },
    ]
  }
  const type =
    typeof groupType === 'string' && !/^[A-Za-z_][A-Za-z0-9_]{0,62}$/.test(groupType)
      ? [{ path: 'spec.config.group_entity_type', message: 'must be an identifier without a namespace' }]
      : []
  const entityText = typeof entities === 'string' ? entities : '[]'
  const parsed = cedarViolations(policies, entityText, hasShadow ? shadow : [], replaces === true).map(
    ({ path, message }) => ({
      path: `spec.config.${path.replace(/^entitiesJson/, 'entities_json').replace(/^shadowPolicies/, 'shadow_policies')}`,
      message,
    }),
  )
  return [...unknown, ...wrong, ...type, ...parsed]
}

function pointOf(type: PointType): (config: Fields) => Violation[] {
  return (config) =>
    readDecisionPoint(type, config).violations.map(({ path, message }) => ({
      path: path === '' ? 'spec.config' : `spec.config.${path}`,
      message,
    }))
}

function unknownKeys(config: Fields, known: readonly string[], path: string): Violation[] {
  return Object.keys(config)
    .filter((key) => !known.includes(key))
    .map((key) => ({
      path: `${path}.${key.slice(0, 80)}`,
      message: `is not a known field; use one of ${known.join(', ')}`,
    }))
}

/** Lists the Secrets that a decision point uses. */
export function authzConfigSecrets(config: MCPAuthzConfig): readonly SecretRef[] {
  const point = decisionPointOf(config)
  return point ? decisionPointSecrets(point) : []
}

/** Lists the CA bundles that a decision point uses. */
export function authzConfigBundles(config: MCPAuthzConfig): readonly CABundleSource[] {
  const point = decisionPointOf(config)
  const bundle = point && decisionPointBundle(point)
  return bundle ? [bundle] : []
}

/** Returns the failure if a decision point's client certificate and key cannot be used together. */
export function authzConfigFailure(context: SyncContext<'MCPAuthzConfig'>): SyncFailure | undefined {
  const point = decisionPointOf(context.parent)
  return point && decisionPointPairFailure(point, context)
}

function decisionPointOf({ spec }: MCPAuthzConfig): TypedPoint | undefined {
  return isPointType(spec.type) ? readDecisionPoint(spec.type, spec.config).value : undefined
}

/** Warns about unknown names in policies. */
export function authzConfigWarnings(config: MCPAuthzConfig): string[] {
  const { spec } = config
  const { policies, shadow_policies: shadow, entities_json: entities, group_entity_type: type } = spec.config
  if (isPointType(spec.type)) return decisionPointWarnings(decisionPointOf(config))
  if (spec.type !== 'cedarv1') return []
  return cedarWarnings({
    policies: textsIn(policies),
    shadowPolicies: textsIn(shadow),
    ...(typeof entities === 'string' ? { entitiesJson: entities } : {}),
    ...(typeof type === 'string' ? { groupEntityType: type } : {}),
  }).map((line) => `config.${line.replace(/^shadowPolicies/, 'shadow_policies')}`)
}

function textsIn(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : []
}
