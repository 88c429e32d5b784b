/**
 * Reads the settings of an external decision point in two formats and converts them to the runtime format.
 *
 * A resource's own authzConfig uses camelCase, and the schema validates it. MCPAuthzConfig and ConfigMaps contain the
 * object `pdp` in the format of other gateways: snake_case, with the timeout in seconds. The object is converted to the
 * first format and validated with the same schema. Secrets and certificates are mounted, and the file contains their
 * paths.
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
import { type Fields, fieldsOf, isFields, definedFields } from '../base/kube.ts'
import { caBundleFailure, caKey } from '../references/resolve.ts'
import type { AnyContext } from '../sync/context.ts'
import type { PodNeeds } from './needs.ts'
import { type ConfigPart, failed, type SyncFailure } from '../sync/conditions.ts'
import { clientPairFailure, clientPairIn } from './client-certificate.ts'

const directory = '/config/decision-point'

const pointTypes = ['httpv1', 'authzenv1'] as const
export type PointType = (typeof pointTypes)[number]

/** A decision point with its protocol type. */
export type TypedPoint =
  | { readonly type: 'httpv1'; readonly point: DecisionPoint }
  | { readonly type: 'authzenv1'; readonly point: AuthzenPoint }

/** True for a type that denotes a decision point. */
export function isPointType(type: unknown): type is PointType {
  return pointTypes.some((known) => known === type)
}

/** Returns a resource's own decision point; undefined when it uses policies or has no authorization. */
export function pointIn(config: AuthzConfig | undefined): TypedPoint | undefined {
  const { httpv1, authzenv1 } = config ?? {}
  if (httpv1) return { type: 'httpv1', point: httpv1 }
  return authzenv1 && { type: 'authzenv1', point: authzenv1 }
}

/** Converts a decision point to the runtime's `authz`, and adds its files to the pod. */
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

/** Lists the Secret keys that the decision point needs. */
export function decisionPointSecrets({ point: { http } }: TypedPoint): readonly SecretRef[] {
  const { clientCertificateSecretRef: pair, bearerTokenSecretRef: token } = http
  return [...(pair ? Object.values(clientPairIn(pair)) : []), ...(token ? [token] : [])]
}

/** Returns the failure if the client certificate and its key exist, but cannot be used together. */
export function decisionPointPairFailure(
  { type, point: { http } }: TypedPoint,
  context: AnyContext,
): SyncFailure | undefined {
  const secret = http.clientCertificateSecretRef
  return (
    secret && clientPairFailure(context, clientPairIn(secret), `${type}: http.clientCertificateSecretRef`)
  )
}

/** Returns the decision point's trust anchors; undefined when it uses only the system's trust anchors. */
export function decisionPointBundle({ point: { http } }: TypedPoint): CABundleSource | undefined {
  return http.caBundleRef && { configMapRef: http.caBundleRef }
}

/** Converts a resource's own decision point to configuration. */
export function ownDecisionPoint(
  point: TypedPoint,
  context: AnyContext,
  needs: PodNeeds,
): ConfigPart<RuntimeAuthz> {
  const missing = context.missingSecrets(decisionPointSecrets(point))
  const bundle = decisionPointBundle(point)
  const anchors = bundle && caBundleFailure(context, bundle)
  const pair = decisionPointPairFailure(point, context)
  if (pair && missing.length === 0) return failed(pair.reason, `authzConfig.${pair.message}`)
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

/** Reads the object `pdp`. The paths in violations use snake_case and start with a field of the object. */
export function readDecisionPoint(type: PointType, pdp: Fields): ReadDecisionPoint {
  const foreign = camelCaseKeys(pdp, '')
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
  if (!value) throw new Error('no value was set for a valid decision point')
  return { value, violations: [] }
}

/** Rejects camelCase fields. If a field had two spellings, the effective value would be unclear. */
function camelCaseKeys(value: unknown, path: string): Violation[] {
  return Object.entries(fieldsOf(value)).flatMap(([key, inner]) => [
    ...(/[A-Z]/.test(key)
      ? [
          {
            path: `${path}${key.slice(0, 80)}`,
            message: `is not a known field; use snake_case, such as claim_mapping`,
          },
        ]
      : []),
    ...camelCaseKeys(inner, `${path}${key.slice(0, 80)}.`),
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

/** Converts the field names in a message to snake_case. */
function snakeNames(message: string): string {
  return message.replace(/\b[a-z]+(?:[A-Z][a-z]+)+\b/g, snakeCase)
}
