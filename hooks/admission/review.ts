/**
 * Handles AdmissionReview v1. Reports all errors in an object at once. Does not check references to other objects,
 * because an object may be created after the objects that refer to it.
 *
 * Accepts an update when the object is being deleted or its spec has not changed. Otherwise, controllers could not
 * remove finalizers from an object that newer rules reject.
 * Source: Kubernetes admission.k8s.io/v1.
 */
import { formatViolations, GatehouseError, isKindName, type Violation } from '../../schemas/index.ts'
import { isFields, isTerminating, type KubeObject } from '../base/kube.ts'
import type { HookSettings } from '../base/settings.ts'
import { type AdmissionVerdict, validateResource } from './validate.ts'

export interface AdmissionResponse {
  readonly uid: string
  readonly allowed: boolean
  readonly status?: { readonly code: number; readonly reason: string; readonly message: string }
  readonly warnings?: readonly string[]
}

export interface AdmissionReview {
  readonly apiVersion: 'admission.k8s.io/v1'
  readonly kind: 'AdmissionReview'
  readonly response: AdmissionResponse
}

const maxWarning = 120
const maxMessage = 8_000

/** Reviews one request. Throws GatehouseError BAD_REQUEST when the body is not an AdmissionReview v1. */
export function reviewAdmission(
  registry: { readonly settings: HookSettings },
  body: unknown,
): { readonly review: AdmissionReview; readonly kind: string } {
  const request = isFields(body) && body['kind'] === 'AdmissionReview' ? body['request'] : undefined
  if (!isFields(request) || typeof request['uid'] !== 'string' || request['uid'] === '') {
    throw new GatehouseError('BAD_REQUEST', {
      detail: 'the request body must be an AdmissionReview with request.uid',
    })
  }
  const kind = isFields(request['kind']) ? request['kind']['kind'] : undefined
  const verdict = check(request, registry.settings)
  const review: AdmissionReview = {
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    response: responseOf(request['uid'], verdict),
  }
  return { review, kind: isKindName(kind) ? kind : 'unknown' }
}

const acceptedVerdict: AdmissionVerdict = { violations: [], warnings: [] }

function check(request: Readonly<Record<string, unknown>>, settings: HookSettings): AdmissionVerdict {
  const { operation, object, oldObject } = request
  if (operation === 'DELETE') return reviewDeletion(oldObject)
  if (operation !== 'CREATE' && operation !== 'UPDATE') return acceptedVerdict
  if (typeof request['subResource'] === 'string' && request['subResource'] !== '') return acceptedVerdict
  return validateResource(object, { old: operation === 'UPDATE' ? oldObject : undefined, settings })
}

export const allowDelete = 'gatehouse.dev/allow-delete'

/**
 * Rejects the deletion of an object that its status reports as in use, unless the object has the `allowDelete`
 * annotation.
 */
function reviewDeletion(old: unknown): AdmissionVerdict {
  if (!isFields(old) || !isFields(old['metadata']) || isTerminating(old as unknown as KubeObject))
    return acceptedVerdict
  const annotations = old['metadata']['annotations']
  if (isFields(annotations) && annotations[allowDelete] === 'true') return acceptedVerdict
  const referrers = referrersOf(old['status'])
  if (referrers.length === 0) return { violations: [], warnings: groupWarnings(old) }
  const shown = referrers.slice(0, 20).join(', ') + (referrers.length > 20 ? ', …' : '')
  const message = `is in use by ${shown}; remove the references first, or annotate the object with ${allowDelete}: "true"`
  return { violations: [{ path: '', message }], warnings: [] }
}

/**
 * Allows the deletion of a group, but returns a warning. A group contains no data and is often deleted together with
 * its members. The objects that refer to the group keep running, report a condition, and recover when the group is
 * created again.
 */
function groupWarnings({ kind, status }: Readonly<Record<string, unknown>>): string[] {
  const lists = isFields(status)
    ? [status['servers'], status['remoteProxies'], status['entries'], status['openApiServers']]
    : []
  const members = lists.reduce<number>((sum, list) => sum + (Array.isArray(list) ? list.length : 0), 0)
  if (kind !== 'MCPGroup' || members === 0) return []
  return [
    `${members} members remain; virtual servers keep running and report GroupRefNotFound until the group exists again`,
  ]
}

function referrersOf(status: unknown): string[] {
  if (!isFields(status)) return []
  const workloads = Array.isArray(status['referencingWorkloads']) ? status['referencingWorkloads'] : []
  const servers = Array.isArray(status['referencingVirtualServers'])
    ? status['referencingVirtualServers']
    : []
  const named = [
    ...workloads.filter(isFields).map(({ kind, name }) => `${String(kind)} ${String(name)}`),
    ...servers.map((name) => `VirtualMCPServer ${String(name)}`),
  ]
  const { referenceCount } = status
  const others = typeof referenceCount === 'number' ? referenceCount - named.length : 0
  return others > 0 ? [...named, `${others} other resources`] : named
}

function responseOf(uid: string, { violations, warnings }: AdmissionVerdict): AdmissionResponse {
  const shown = warnings
    .slice(0, 30)
    .map((text) => (text.length > maxWarning ? `${text.slice(0, maxWarning - 1)}…` : text))
  return {
    uid,
    allowed: violations.length === 0,
    ...(violations.length > 0 && {
      status: { code: 422, reason: 'Invalid', message: messageOf(violations) },
    }),
    ...(shown.length > 0 && { warnings: shown }),
  }
}

function messageOf(violations: readonly Violation[]): string {
  const text = formatViolations(violations)
  return text.length > maxMessage ? `${text.slice(0, maxMessage - 1)}…` : text
}
