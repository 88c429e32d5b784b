/**
 * An external decision point: settings in two spellings, and the runtime form of them.
 *
 * A resource's own authzConfig has it in camelCase, checked by the schema. MCPAuthzConfig and ConfigMaps hold the object
 * `pdp` as other gateways read it, in snake_case and with seconds for the time-out; it is brought into the first spelling
 * and checked by the same schema. Secrets and certificates are mounted: the file names paths.
 * Source: docs/guides/decision-point.md.
 */
import {
  type AuthzConfig,
  type AuthzenPoint,
  type CABundleSource,
  type DecisionPoint,
  type DecisionPointHttp,
  type RuntimeAuthz,
  type RuntimeDecisionPointHttp,
  type SecretRef,
  validateManifest,
  type Violation,
  withDefaults,
} from '../../schemas/index.ts'
import { definedFields } from '../children/defined.ts'
import { type Fields, fieldsOf, isFields } from '../base/kube.ts'
import { caBundleFailure, caKey } from '../references/resolve.ts'
import type { AnyContext } from '../sync/context.ts'
import type { PodNeeds } from './needs.ts'
import { type ConfigPart, failed } from '../sync/conditions.ts'

const directory = '/config/decision-point'

const pointTypes = ['httpv1', 'authzenv1'] as const
export type PointType = (typeof pointTypes)[number]

/** A decision point with the type that says how it is spoken to. */
export type TypedPoint =
  | { readonly type: 'httpv1'; readonly point: DecisionPoint }
  | { readonly type: 'authzenv1'; readonly point: AuthzenPoint }

/** Narrows texts of free-form settings. */
export function isPointType(type: unknown): type is PointType {
  return pointTypes.some((one) => one === type)
}

/** The decision point of a resource's own; undefined: policies, or none. */
export function pointIn(config: AuthzConfig | undefined): TypedPoint | undefined {
  const { httpv1, authzenv1 } = config ?? {}
  if (httpv1) return { type: 'httpv1', point: httpv1 }
  return authzenv1 && { type: 'authzenv1', point: authzenv1 }
}

/** `authz` of the runtime; asks the pod for the files. */
export function decisionPointPart(typed: TypedPoint, needs: PodNeeds): RuntimeAuthz {
  const http = mountedHttp(typed.point.http, needs)
  return {
    ...(typed.type === 'httpv1'
      ? { type: typed.type, httpv1: { ...typed.point, http } }
      : { type: typed.type, authzenv1: { ...typed.point, http } }),
    entitiesJson: '[]',
    groupEntityType: 'ServiceGroup',
  }
}

function mountedHttp(http: DecisionPointHttp, needs: PodNeeds): RuntimeDecisionPointHttp {
  const { url, timeout, insecureSkipVerify, caBundleRef, clientCertificateSecretRef, bearerTokenSecretRef } =
    http
  if (caBundleRef) needs.configFiles('decision-point-ca', `${directory}/ca`, caBundleRef.name)
  if (clientCertificateSecretRef) {
    needs.secretFiles('decision-point-client', `${directory}/client`, clientCertificateSecretRef.name, [
      { key: 'tls.crt', path: 'tls.crt' },
      { key: 'tls.key', path: 'tls.key' },
    ])
  }
  if (bearerTokenSecretRef) {
    const { name, key } = bearerTokenSecretRef
    needs.secretFiles('decision-point-token', `${directory}/token`, name, [{ key, path: 'token' }])
  }
  return definedFields({
    url,
    timeout,
    insecureSkipVerify,
    caBundlePath: caBundleRef && `${directory}/ca/${caKey(caBundleRef.key)}`,
    clientCertificatePath: clientCertificateSecretRef && `${directory}/client/tls.crt`,
    clientKeyPath: clientCertificateSecretRef && `${directory}/client/tls.key`,
    bearerTokenPath: bearerTokenSecretRef && `${directory}/token/token`,
  })
}

/** Keys of Secrets that it needs. */
export function decisionPointSecrets({ point: { http } }: TypedPoint): readonly SecretRef[] {
  const { clientCertificateSecretRef: pair, bearerTokenSecretRef: token } = http
  return [
    ...(pair ? ['tls.crt', 'tls.key'].map((key) => ({ name: pair.name, key })) : []),
    ...(token ? [token] : []),
  ]
}

/** Its trust anchors; undefined: those of the system alone. */
export function decisionPointBundle({ point: { http } }: TypedPoint): CABundleSource | undefined {
  return http.caBundleRef && { configMapRef: http.caBundleRef }
}

/** A decision point of a resource's own, as a part of its configuration. */
export function ownDecisionPoint(
  point: TypedPoint,
  context: AnyContext,
  needs: PodNeeds,
): ConfigPart<RuntimeAuthz> {
  const missing = context.missingSecrets(decisionPointSecrets(point))
  const bundle = decisionPointBundle(point)
  const anchors = bundle && caBundleFailure(context, bundle)
  if (missing.length === 0 && !anchors) return { value: decisionPointPart(point, needs) }
  const problems = [
    ...(missing.length > 0 ? [`not found: ${missing.join('; ')}`] : []),
    ...(anchors ? [`http.caBundleRef: ${anchors.message}`] : []),
  ]
  const reason = missing.length > 0 || !anchors ? 'SecretNotFound' : anchors.reason
  return failed(reason, `authzConfig.${point.type}: ${problems.join('; ')}`)
}

export type ReadDecisionPoint =
  | { readonly value: TypedPoint; readonly violations: readonly [] }
  | { readonly value?: undefined; readonly violations: readonly Violation[] }

/** Reads the object `pdp`. Paths of violations are in snake_case and begin with a name of the object. */
export function readDecisionPoint(type: PointType, pdp: Fields): ReadDecisionPoint {
  const foreign = capitalKeys(pdp, '')
  if (foreign.length > 0) return { violations: foreign }
  const manifest = {
    apiVersion: 'gatehouse.dev/v1beta1',
    kind: 'MCPRemoteProxy' as const,
    metadata: { name: 'x' },
    spec: { remoteUrl: 'https://x.example', authzConfig: { type, [type]: camelCase(pdp) } },
  }
  const at = `spec.authzConfig.${type}`
  const violations = validateManifest(manifest)
    .filter(({ path }) => path.startsWith(at))
    .map(({ path, message }) => ({
      path: snakeCase(path.slice(at.length).replace(/^\./, '')),
      message: snakeNames(message),
    }))
  if (violations.length > 0) return { violations }
  const value = pointIn(withDefaults(manifest).spec.authzConfig)
  if (!value) throw new Error('a decision point that is valid has no value')
  return { value, violations: [] }
}

/** Members of the other spelling: two spellings of one member would leave open which one counts. */
function capitalKeys(value: unknown, path: string): Violation[] {
  return Object.entries(fieldsOf(value)).flatMap(([key, inner]) => [
    ...(/[A-Z]/.test(key)
      ? [
          {
            path: `${path}${key.slice(0, 80)}`,
            message: `is not known; members are written like claim_mapping`,
          },
        ]
      : []),
    ...capitalKeys(inner, `${path}${key.slice(0, 80)}.`),
  ])
}

function camelCase(value: unknown): unknown {
  if (!isFields(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [
      key.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()),
      key === 'timeout' && Number.isInteger(inner) ? `${String(inner)}s` : camelCase(inner),
    ]),
  )
}

function snakeCase(text: string): string {
  return text.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}

/** Names of members within a sentence. */
function snakeNames(message: string): string {
  return message.replace(/\b[a-z]+(?:[A-Z][a-z]+)+\b/g, snakeCase)
}
