/**
 * Finds errors in references between resources in a namespace: the object is absent, invalid or not ready.
 *
 * Validates a configuration with the code that admission uses, and adds the findings of the configuration's own sync,
 * such as missing Secrets. A consumer therefore neither waits for the other object's status nor trusts an outdated
 * status.
 */
import {
  byText,
  type CABundleSource,
  formatViolations,
  type KindName,
  type Kinds,
  type Violation,
} from '../../schemas/index.ts'
import { conditionOf, type SyncFailure, failed, type ConfigPart } from '../sync/conditions.ts'
import { type AnyContext, currentCondition } from '../sync/context.ts'
import { fieldsOf, type KubeObject, textOf } from '../base/kube.ts'

type Context = AnyContext

/** Combines the manifest's own violations into one failure. */
export function specFailure(violations: readonly Violation[], reason: string): SyncFailure | undefined {
  return violations.length > 0 ? { reason, message: formatViolations(violations) } : undefined
}

export function groupFailure(context: Context, name: string): SyncFailure | undefined {
  const group = context.find('MCPGroup', name)
  if (!group) return { reason: 'GroupRefNotFound', message: `MCPGroup ${name} does not exist` }
  const phase = fieldsOf(group['status'])['phase']
  if (phase === 'Ready') return undefined
  return { reason: 'GroupRefNotReady', message: `MCPGroup ${name} is not ready` }
}

export interface ConfigReasons {
  readonly notFound: string
  readonly notValid: string
}

/** Returns a configuration object with its defaults, or the reason why it cannot be used. */
export function configCalled<K extends KindName>(
  context: Context,
  kind: K,
  name: string,
  reasons: ConfigReasons,
): ConfigPart<Kinds[K]> {
  const stored = context.find(kind, name)
  const config = context.filled(kind, name)
  if (!stored || !config) return failed(reasons.notFound, `${kind} ${name} does not exist`)
  const violations = context.violationsOf(stored)
  if (violations.length > 0)
    return failed(reasons.notValid, `${kind} ${name} is not valid: ${formatViolations(violations)}`)
  const failure = verdictFailure(stored, reasons.notValid)
  return failure ? { failure } : { value: withoutAbsentBundles(stored, config) }
}

/** The condition for a configuration object, with its reasons. */
export interface ConfigCondition extends ConfigReasons {
  readonly type: string
  readonly valid: string
  /** Condition message while the object is valid. Defaults to `The <kind> is valid`. */
  readonly message?: string
}

export const oidcCondition: ConfigCondition = {
  type: 'OIDCConfigRefValidated',
  valid: 'OIDCConfigRefValid',
  notFound: 'OIDCConfigRefNotFound',
  notValid: 'OIDCConfigRefNotValid',
}

export const telemetryCondition: ConfigCondition = {
  type: 'TelemetryConfigRefValidated',
  valid: 'TelemetryConfigRefValid',
  notFound: 'TelemetryConfigRefNotFound',
  notValid: 'TelemetryConfigRefInvalid',
}

export const webhookCondition: ConfigCondition = {
  type: 'WebhookConfigRefValidated',
  valid: 'WebhookConfigRefValid',
  notFound: 'WebhookConfigRefNotFound',
  notValid: 'WebhookConfigRefInvalid',
}

export const toolCondition: ConfigCondition = {
  type: 'ToolConfigValidated',
  valid: 'ToolConfigValid',
  notFound: 'ToolConfigNotFound',
  notValid: 'ToolConfigNotValid',
}

export const authzCondition: ConfigCondition = {
  type: 'AuthzConfigRefValidated',
  valid: 'AuthzConfigRefValid',
  notFound: 'AuthzConfigRefNotFound',
  notValid: 'AuthzConfigRefNotValid',
}

/** Returns the failure from the configuration's own Valid condition, if it is for the current spec. */
function verdictFailure(config: KubeObject, fallback: string): SyncFailure | undefined {
  const verdict = currentCondition(config, 'Valid')
  if (verdict?.['status'] !== 'False') return undefined
  const { reason, message } = verdict
  const mirrored = typeof reason === 'string' && mirroredReasons.has(reason) ? reason : fallback
  const why = typeof message === 'string' ? message : 'see its status'
  return { reason: mirrored, message: `${config.kind} ${config.metadata.name} is not valid: ${why}` }
}

/** Reasons that the conditions of referring objects repeat unchanged. */
const mirroredReasons: ReadonlySet<string> = new Set(['EnterpriseRequired', 'InvalidConfig'])

/** Returns the hash in a configuration's status; undefined before its first sync. */
export function configHashOf(context: Context, kind: string, name: string): string | undefined {
  const hash = fieldsOf(context.find(kind, name)?.['status'])['configHash']
  return typeof hash === 'string' && hash !== '' ? hash : undefined
}

/** Returns a failure if the ConfigMap that contains the trust anchors, or its key, does not exist. */
export function caBundleFailure(context: Context, source: CABundleSource): SyncFailure | undefined {
  const { name, key } = source.configMapRef
  const map = context.configMap(name)
  if (!map) return { reason: 'CABundleRefNotFound', message: `ConfigMap ${name} does not exist` }
  const data = { ...fieldsOf(map['data']), ...fieldsOf(map['binaryData']) }
  if (Object.hasOwn(data, caKey(key))) return undefined
  return { reason: 'CABundleRefInvalid', message: `ConfigMap ${name} has no key ${caKey(key)}` }
}

const caBundleCondition = 'CABundleRefValidated'
const caBundlePresent = 'CABundleRefValid'
const caBundleAbsent = 'CABundleRefAbsent'

export interface CaBundleCheck {
  readonly failure?: SyncFailure | undefined
  /** Optional bundles that do not exist, listed for the status; undefined when there are none. */
  readonly absent?: readonly string[] | undefined
}

/**
 * Sets the condition that reports an object's own CA bundles, if the object has any. The condition lists every absent
 * bundle. A missing optional bundle is not a failure, because the default trust anchors apply.
 */
export function checkCaBundles(context: Context, sources: readonly CABundleSource[]): CaBundleCheck {
  if (sources.length === 0) return {}
  const missing = sources.flatMap((source) => {
    const failure = caBundleFailure(context, source)
    return failure ? [{ ...failure, ...source.configMapRef }] : []
  })
  const required = missing.filter(({ optional }) => optional !== true)
  const optional = missing.filter((one) => one.optional === true)
  const names = new Set(optional.map(({ name, key }) => caBundleName(name, key)))
  const absent = names.size > 0 ? [...names].sort(byText) : undefined
  const [first] = required
  if (absent && !first) {
    const message = `${messagesOf(optional)} (optional); the default trust anchors apply`
    context.conditions.set(caBundleCondition, 'True', caBundleAbsent, message)
    return { absent }
  }
  const failure = first && { reason: first.reason, message: messagesOf(required) }
  context.conditions.check(caBundleCondition, failure, caBundlePresent, 'The CA bundle exists')
  return { failure, absent }
}

function messagesOf(failures: readonly SyncFailure[]): string {
  return [...new Set(failures.map(({ message }) => message))].join('; ')
}

/** A slash separates the parts, because neither part can contain a slash. */
function caBundleName(configMap: string, key: string | undefined): string {
  return `${configMap}/${caKey(key)}`
}

/**
 * Returns true when the CA bundle of a related object must be mounted. The request does not contain the ConfigMap, so
 * the function reads the object's status.
 *
 * If the reason is CABundleRefAbsent but there is no list, all optional bundles are treated as absent. An
 * MCPServerEntry has only one bundle, so it does not need a list. Older versions did not write this list for a
 * configuration, so pods use the default trust anchors until the configuration's next sync. Otherwise, pods that mount
 * a missing ConfigMap could not start.
 */
export function hasCaBundle(object: KubeObject, source: unknown): boolean {
  const { name, key, optional } = fieldsOf(fieldsOf(source)['configMapRef'])
  if (optional !== true) return true
  const reason = conditionOf(object, caBundleCondition)?.['reason']
  if (reason !== caBundleAbsent) return reason === caBundlePresent
  const absent = fieldsOf(object['status'])['absentCaBundles']
  return Array.isArray(absent) && !absent.includes(caBundleName(String(name), textOf(key)))
}

/** Drops optional CA bundles that do not exist. */
function withoutAbsentBundles<K extends KindName>(stored: KubeObject, config: Kinds[K]): Kinds[K] {
  const spec = Object.entries(config.spec).map(([name, block]) => [name, withoutAbsentIn(stored, block)])
  return { ...config, spec: Object.fromEntries(spec) }
}

function withoutAbsentIn(stored: KubeObject, value: unknown): unknown {
  if (Array.isArray(value)) return value.map((item: unknown) => withoutAbsentIn(stored, item))
  if (typeof value !== 'object' || value === null) return value
  const present = Object.entries(value).filter(
    ([key, item]) => key !== 'caBundleRef' || hasCaBundle(stored, item),
  )
  return Object.fromEntries(present.map(([key, item]) => [key, withoutAbsentIn(stored, item)]))
}

/** Returns the key of a CA bundle. Defaults to `ca.crt`. */
export function caKey(key: string | undefined): string {
  return key === undefined || key === '' ? 'ca.crt' : key
}
