/**
 * What the proxy of a stdio server reports of its attachment, as the condition Attached: pods are not seen from here, so that
 * a server which crashes or cannot be pulled is reported by the proxy that waits for it.
 *
 * The report is data of a pod: every member is checked.
 */
import { serverNames } from '../../children/names.ts'
import type { WorkloadState } from '../../sync/workload-state.ts'
import type { SyncFailure } from '../../sync/conditions.ts'
import { jsonIn } from '../../base/json-bounds.ts'
import { fieldsOf } from '../../base/kube.ts'
import type { SyncContext } from '../../sync/context.ts'
import { isAttached } from './stdio.ts'

type Context = SyncContext<'MCPServer'>

interface ReportedAttachment {
  readonly attached: boolean
  readonly reason: string
  readonly message: string
  /** What is on its way will not help. */
  readonly needsSomebody: boolean
  /** Of the template of the pod that it is about; undefined when it is about none. */
  readonly revision: string | undefined
}

const maxMessage = 1_024
/** Reasons that do not pass by themselves. */
const lasting: ReadonlySet<string> = new Set([
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

/** Undefined for a server that is not attached to, and before the first report. */
function attachmentOf(context: Context): ReportedAttachment | undefined {
  if (!isAttached(context)) return undefined
  const report = context.child('ConfigMap', serverNames(context.name).report)
  const text = fieldsOf(report?.['data'])['attach.json']
  const { attached, reason, message, revision } = fieldsOf(
    typeof text === 'string' ? jsonIn(text) : undefined,
  )
  if (typeof attached !== 'boolean' || typeof reason !== 'string' || typeof message !== 'string')
    return undefined
  if (!/^[A-Za-z]{1,64}$/.test(reason)) return undefined
  return {
    attached,
    reason,
    message: message.slice(0, maxMessage),
    needsSomebody: !attached && lasting.has(reason),
    revision: typeof revision === 'string' ? revision : undefined,
  }
}

/**
 * Why somebody must act before the server is attached to. Undefined while a report is of a pod of an earlier template: the present
 * one may be right.
 */
export function brokenAttachment(
  context: Context,
  [proxy, server]: readonly (WorkloadState | undefined)[],
): SyncFailure | undefined {
  const found = attachmentOf(context)
  if (!found?.needsSomebody || !proxy || !server || proxy.availableReplicas > 0) return undefined
  if (found.revision !== undefined && found.revision !== server.revision) return undefined
  return { reason: found.reason, message: found.message }
}

/** `proxy`: without a pod of it that serves, a report that all is well is old. */
export function setAttached(context: Context, proxy: WorkloadState | undefined): void {
  if (!isAttached(context)) return
  const found = attachmentOf(context)
  if (!found || (found.attached && (proxy?.availableReplicas ?? 0) === 0))
    context.conditions.set('Attached', 'Unknown', 'NotReported', 'The proxy has not reported yet')
  else context.conditions.set('Attached', found.attached ? 'True' : 'False', found.reason, found.message)
}
