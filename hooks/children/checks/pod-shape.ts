/**
 * Checks the JSON types of commonly used fields in a pod template, as defined by core/v1.
 *
 * This check is not a full validation of PodSpec. It ignores unknown fields, which the API server drops, and finds
 * values that the API server could not decode, and common mistakes with quantities, names and ports.
 */
import { fieldsOf, isFields } from '../../base/kube.ts'
import { annotationFailure, labelFailure } from './metadata-shape.ts'
import { compareQuantities } from '../quantity.ts'

type Check = (value: unknown, path: string) => readonly string[]

const quantityForm = /^[+-]?(\d+|\d+\.\d*|\.\d+)([eE][+-]?\d+|[KMGTPE]i|[numkMGTPE])?$/
const nameForm = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/

/** A real pod template is about twelve levels deep. */
const maxDepth = 40

/** Returns one line per error; empty when the API server can decode the template. */
export function podTemplateErrors(template: unknown): readonly string[] {
  if (isDeeperThan(template, maxDepth)) return [`podTemplateSpec is nested more than ${maxDepth} levels deep`]
  return podTemplate(template, 'podTemplateSpec')
}

function isDeeperThan(value: unknown, depth: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  if (depth === 0) return true
  return Object.values(value).some((item) => isDeeperThan(item, depth - 1))
}

/** True for a Kubernetes quantity such as `500m` or `1Gi`. */
function isQuantity(value: unknown): boolean {
  return typeof value === 'string' && quantityForm.test(value)
}

const text: Check = (value, path) => (typeof value === 'string' ? [] : [`${path} must be a string`])
const flag: Check = (value, path) => (typeof value === 'boolean' ? [] : [`${path} must be true or false`])
const whole: Check = (value, path) => (Number.isSafeInteger(value) ? [] : [`${path} must be a whole number`])
const port: Check = (value, path) =>
  Number.isSafeInteger(value) && Number(value) >= 1 && Number(value) <= 65_535
    ? []
    : [`${path} must be a port, 1 to 65535`]
const portOrName: Check = (value, path) => (typeof value === 'string' ? [] : port(value, path))
const quantity: Check = (value, path) =>
  isQuantity(value) || (typeof value === 'number' && Number.isFinite(value))
    ? []
    : [`${path} must be a quantity such as 500m or 1Gi`]
const label: Check = (value, path) =>
  typeof value === 'string' && nameForm.test(value)
    ? []
    : [`${path} must be a name: lower case letters, digits and hyphens, at most 63`]
const anyObject: Check = (value, path) => (isFields(value) ? [] : [`${path} must be an object`])

function list(item: Check): Check {
  return (value, path) =>
    Array.isArray(value)
      ? value.flatMap((entry, index) => (isDelete(entry) ? [] : item(entry, `${path}[${index}]`)))
      : [`${path} must be a list`]
}

function map(item: Check): Check {
  return (value, path) =>
    isFields(value)
      ? Object.entries(value).flatMap(([key, entry]) => (entry === null ? [] : item(entry, `${path}.${key}`)))
      : [`${path} must be an object`]
}

function object(members: Readonly<Record<string, Check>>, required: readonly string[] = []): Check {
  return (value, path) => {
    if (!isFields(value)) return [`${path} must be an object`]
    if (isDelete(value)) return []
    const missing = required.filter((key) => value[key] === undefined || value[key] === null)
    const present = Object.entries(members).filter(([key]) => value[key] !== undefined && value[key] !== null)
    return [
      ...missing.map((key) => `${path}.${key} is required`),
      ...present.flatMap(([key, check]) => check(value[key], `${path}.${key}`)),
    ]
  }
}

function requestsAboveLimits(value: unknown, path: string): readonly string[] {
  const { limits, requests } = fieldsOf(value)
  return Object.entries(fieldsOf(requests)).flatMap(([name, request]) => {
    const limit = fieldsOf(limits)[name]
    const above = isAmount(request) && isAmount(limit) && compareQuantities(`${request}`, `${limit}`) > 0
    return above ? [`${path}.requests.${name} must not exceed the limit of ${limit}`] : []
  })
}

function isAmount(value: unknown): value is string | number {
  return typeof value === 'string' || typeof value === 'number'
}

const labels: Check = (value, path) => [
  ...map(text)(value, path),
  ...violationsOfKeys(value, path, labelFailure),
]
const annotations: Check = (value, path) => [
  ...map(text)(value, path),
  ...violationsOfKeys(value, path, annotationFailure),
]

function violationsOfKeys(
  value: unknown,
  path: string,
  failureOf: (key: string, value: string) => string | undefined,
): readonly string[] {
  return Object.entries(fieldsOf(value)).flatMap(([key, item]) => {
    const failure = key.startsWith('$') || typeof item !== 'string' ? undefined : failureOf(key, item)
    return failure === undefined ? [] : [`${path}.${key} ${failure}`]
  })
}

function isDelete(value: unknown): boolean {
  return isFields(value) && value['$patch'] !== undefined
}

const keySelector = object({ name: text, key: text, optional: flag }, ['key'])
const env = object(
  {
    name: text,
    value: text,
    valueFrom: object({ secretKeyRef: keySelector, configMapKeyRef: keySelector, fieldRef: anyObject }),
  },
  ['name'],
)
const amounts = object({ limits: map(quantity), requests: map(quantity) })
const resources: Check = (value, path) => [...amounts(value, path), ...requestsAboveLimits(value, path)]
const probe = object({
  httpGet: object({ path: text, port: portOrName }),
  tcpSocket: object({ port: portOrName }),
  exec: object({ command: list(text) }),
  initialDelaySeconds: whole,
  periodSeconds: whole,
  timeoutSeconds: whole,
  failureThreshold: whole,
  successThreshold: whole,
})
const container = object(
  {
    name: label,
    image: text,
    imagePullPolicy: text,
    command: list(text),
    args: list(text),
    workingDir: text,
    env: list(env),
    envFrom: list(anyObject),
    ports: list(object({ containerPort: port, name: text, protocol: text }, ['containerPort'])),
    volumeMounts: list(object({ name: text, mountPath: text, readOnly: flag, subPath: text }, ['mountPath'])),
    resources,
    livenessProbe: probe,
    readinessProbe: probe,
    startupProbe: probe,
    lifecycle: anyObject,
    securityContext: anyObject,
    stdin: flag,
    tty: flag,
  },
  ['name'],
)
const items = list(object({ key: text, path: text }, ['key', 'path']))
const volume = object(
  {
    name: label,
    configMap: object({ name: text, items, optional: flag, defaultMode: whole }),
    secret: object({ secretName: text, items, optional: flag, defaultMode: whole }),
    emptyDir: object({ sizeLimit: quantity, medium: text }),
    hostPath: object({ path: text, type: text }, ['path']),
    persistentVolumeClaim: object({ claimName: text, readOnly: flag }, ['claimName']),
    projected: anyObject,
  },
  ['name'],
)
const podSpec = object({
  containers: list(container),
  initContainers: list(container),
  volumes: list(volume),
  imagePullSecrets: list(object({ name: text })),
  nodeSelector: map(text),
  tolerations: list(anyObject),
  topologySpreadConstraints: list(anyObject),
  affinity: anyObject,
  hostAliases: list(object({ ip: text, hostnames: list(text) }, ['ip'])),
  securityContext: anyObject,
  serviceAccountName: text,
  priorityClassName: text,
  runtimeClassName: text,
  schedulerName: text,
  dnsPolicy: text,
  dnsConfig: anyObject,
  restartPolicy: text,
  terminationGracePeriodSeconds: whole,
  activeDeadlineSeconds: whole,
  hostNetwork: flag,
  hostPID: flag,
  hostIPC: flag,
  shareProcessNamespace: flag,
  automountServiceAccountToken: flag,
  enableServiceLinks: flag,
})
const podTemplate = object({
  metadata: object({ labels, annotations }),
  spec: podSpec,
})
