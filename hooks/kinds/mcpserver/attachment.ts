/**
 * Converts the attachment report of a stdio server's proxy to the condition Attached. Hooks cannot read pods, so the
 * proxy reports a server that crashes, or an image that cannot be pulled.
 *
 * The report comes from a pod, so every field is checked.
 */
import { serverNames } from '../../children/names.ts'
import type { WorkloadState } from '../../sync/workload-state.ts'
import type { SyncFailure } from '../../sync/conditions.ts'
import { parseEmbeddedJson } from '../../base/json-bounds.ts'
import { fieldsOf } from '../../base/kube.ts'
import type { SyncContext } from '../../sync/context.ts'
import { isAttached } from './stdio.ts'

type Context = SyncContext<'MCPServer'>

interface ReportedAttachment {
  readonly attached: boolean
  readonly reason: string
  readonly message: string
  /** True when the failure requires manual action. */
  readonly needsAction: boolean
  /** The reported pod's template revision; undefined when the report is not about a pod. */
  readonly revision: string | undefined
}

const maxMessage = 1_024
/** Reasons that require manual action. */
const permanentReasons: ReadonlySet<string> = new Set([
  'AccessRefused',
  'CrashLoopBackOff',
  'CreateContainerConfigError',
  'CreateContainerError',
  'ErrImageNeverPull',
  'ErrImagePull',
  'ImagePullBackOff',
  'InvalidImageName',
  'NoSession',
  'PodUnschedulable',
])

/** Returns undefined if the server does not need an attachment, and before the first report. */
function attachmentOf(context: Context): ReportedAttachment | undefined {
  if (!isAttached(context)) return undefined
  const report = context.child('ConfigMap', serverNames(context.name).report)
  const text = fieldsOf(report?.['data'])['attach.json']
  const { attached, reason, message, revision } = fieldsOf(
    typeof text === 'string' ? parseEmbeddedJson(text) : undefined,
  )
  if (typeof attached !== 'boolean' || typeof reason !== 'string' || typeof message !== 'string')
    return undefined
  if (!/^[A-Za-z]{1,64}$/.test(reason)) return undefined
  return {
    attached,
    reason,
    message: message.slice(0, maxMessage),
    needsAction: !attached && permanentReasons.has(reason),
    revision: typeof revision === 'string' ? revision : undefined,
  }
}

/**
 * Returns the failure that needs manual action before the server can be attached. Returns undefined when the report is
 * about a pod with an earlier template, because the new template may fix the failure.
 */
export function permanentFailure(
  context: Context,
  [proxy, server]: readonly (WorkloadState | undefined)[],
): SyncFailure | undefined {
  const found = attachmentOf(context)
  if (!found?.needsAction || !proxy || !server || proxy.availableReplicas > 0) return undefined
  if (found.revision !== undefined && found.revision !== server.revision) return undefined
  return { reason: found.reason, message: found.message }
}

/** Sets the condition. Ignores a positive report when the proxy has no available pod. */
export function setAttached(context: Context, proxy: WorkloadState | undefined): void {
  if (!isAttached(context)) return
  const found = attachmentOf(context)
  if (!found || (found.attached && (proxy?.availableReplicas ?? 0) === 0))
    context.conditions.set('Attached', 'Unknown', 'NotReported', 'The proxy has not reported yet')
  else context.conditions.set('Attached', found.attached ? 'True' : 'False', found.reason, found.message)
}
