/**
 * Reads a container's state from the pod's status: whether the proxy can attach now and, if not, the reason and the
 * fix.
 * Source: Kubernetes core/v1, PodStatus and ContainerStatus.
 */
import { type Fields, fieldsOf, isFields, listOf } from '../../schemas/index.ts'
import { type ClusterApi, corePath, getObject } from './cluster-api.ts'

export interface ContainerRun {
  readonly podUid: string
  /** Id of the container's current run, which changes with each restart. */
  readonly containerId: string
  readonly restarts: number
}

/** The reason and message of a condition that explains why the proxy cannot attach. */
export interface NotRunning {
  /** Reason in CamelCase. */
  readonly reason: string
  readonly message: string
  /** Revision of the pod's template; undefined if there is no pod. */
  readonly revision?: string | undefined
}

export type PodState =
  | { readonly run: ContainerRun; readonly wrong?: undefined }
  | { readonly run?: undefined; readonly wrong: NotRunning }

/** Reads the pod. Rejects when the API server is unreachable. */
export async function readPodState(
  api: ClusterApi,
  {
    namespace,
    pod,
    container,
  }: { readonly namespace: string; readonly pod: string; readonly container: string },
): Promise<PodState> {
  const { status, body } = await getObject(api, corePath(namespace, 'pods', pod))
  if (status === 200) return withRevision(podState(body, container), body)
  if (status === 404) {
    return not('PodNotFound', `pod ${pod} does not exist: see the events of the StatefulSet that creates it`)
  }
  return not(refusalReason(status), refusalMessage(status, 'get', `pods/${pod}`, body))
}

export function refusalReason(status: number): string {
  return status === 401 || status === 403 ? 'AccessRefused' : 'ApiServerError'
}

/** Returns the API server's error, with a next step for known errors. */
export function refusalMessage(status: number, verb: string, what: string, body: Fields): string {
  const said = textOf(body['message']) || `status ${status}`
  if (status === 403)
    return `the API server rejected ${verb} on ${what}: ${said}; the Role and RoleBinding of the proxy's service account must allow it`
  if (status === 401) return `the API server rejected the proxy's token: ${said}; restart the proxy's pod`
  return `the API server returned ${status} for ${verb} on ${what}: ${said}`
}

/** Label that the StatefulSet controller sets on its pods. */
function withRevision(state: PodState, pod: Fields): PodState {
  if (!state.wrong) return state
  const revision = textOf(fieldsOf(fieldsOf(pod['metadata'])['labels'])['controller-revision-hash'])
  return revision === '' ? state : { wrong: { ...state.wrong, revision } }
}

function podState(pod: Fields, container: string): PodState {
  const metadata = fieldsOf(pod['metadata'])
  const status = fieldsOf(pod['status'])
  const name = textOf(metadata['name'])
  if (metadata['deletionTimestamp'] !== undefined)
    return not('PodTerminating', `pod ${name} is terminating; waiting for its successor`)
  const found = listOf(status['containerStatuses'])
    .filter(isFields)
    .find((one) => one['name'] === container)
  if (!found) return notScheduled(name, status)
  const { waiting, running, terminated } = fieldsOf(found['state'])
  if (isFields(waiting)) return notStarted(name, waiting, found)
  const restarts = typeof found['restartCount'] === 'number' ? found['restartCount'] : 0
  if (isFields(running)) {
    const id = textOf(found['containerID'])
    // Falls back to the restart count, because some nodes do not report an id.
    return { run: { podUid: textOf(metadata['uid']), containerId: id || `#${restarts}`, restarts } }
  }
  return not(
    'ContainerEnded',
    `the server has exited${exitOf(terminated)} and is being restarted: see kubectl logs ${name} -c ${container} --previous`,
  )
}

function notScheduled(name: string, status: Fields): PodState {
  const scheduled = listOf(status['conditions'])
    .filter(isFields)
    .find(({ type }) => type === 'PodScheduled')
  if (scheduled?.['status'] === 'False')
    return not('PodUnschedulable', `pod ${name} has not been scheduled: ${textOf(scheduled['message'])}`)
  return not('PodPending', `pod ${name} is starting`)
}

const next: Readonly<Record<string, string>> = {
  ImagePullBackOff: 'check the image name and imagePullSecrets',
  ErrImagePull: 'check the image name and imagePullSecrets',
  InvalidImageName: 'check spec.image',
  CreateContainerConfigError: 'check the Secrets and ConfigMaps that the server references',
}

function notStarted(name: string, waiting: Fields, container: Fields): PodState {
  const reason = textOf(waiting['reason']) || 'PodPending'
  const said = textOf(waiting['message'])
  if (reason === 'ContainerCreating' || reason === 'PodInitializing')
    return not('PodPending', `pod ${name} is starting`)
  if (reason === 'CrashLoopBackOff') return not(reason, crashing(name, container))
  const step = next[reason] ?? `see kubectl describe pod ${name}`
  return not(/^[A-Za-z]{1,64}$/.test(reason) ? reason : 'ContainerWaiting', `${said || reason}: ${step}`)
}

function crashing(name: string, container: Fields): string {
  const code = exitOf(fieldsOf(container['lastState'])['terminated'])
  return (
    `the server exits as soon as it starts${code}: see kubectl logs ${name} -c ${textOf(container['name'])} --previous; ` +
    'if the server does not read its standard input, set a different transport, or args'
  )
}

/** Returns text such as ` (exit code 1, Error)`, or '' if no details are available. */
function exitOf(terminated: unknown): string {
  const { exitCode, reason } = fieldsOf(terminated)
  return typeof exitCode === 'number' ? ` (exit code ${exitCode}, ${textOf(reason)})` : ''
}

function not(reason: string, message: string): PodState {
  return { wrong: { reason, message: message.slice(0, 1_024) } }
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
