/** Reasons that Kubernetes sets on pods, containers and workloads. */
import type { ReasonRow } from './row.ts'

export const podReasons: readonly ReasonRow[] = [
  {
    reasons: ['ImagePullBackOff', 'ErrImagePull', 'ErrImageNeverPull', 'ImageInspectError'],
    means: 'the node cannot pull the image',
    step: 'check the image name and `imagePullSecrets`',
  },
  { reasons: ['InvalidImageName'], means: 'the image name is invalid', step: 'check `spec.image`' },
  {
    reasons: ['CreateContainerConfigError'],
    means: 'a Secret or ConfigMap that the container needs, or a key in it, is missing',
    step: 'check the Secrets and ConfigMaps that the server references',
  },
  {
    reasons: ['CreateContainerError', 'RunContainerError', 'ContainerCannotRun', 'StartError'],
    means: 'the container cannot be started; often, its command does not exist in the image',
    step: 'check `command` and `args`; the message contains the error from the node',
  },
  {
    reasons: ['OOMKilled'],
    means: 'the container used more memory than its limit',
    step: 'raise `resources.limits.memory` for the container',
  },
  {
    reasons: ['Unschedulable'],
    means: 'no node can run the pod',
    step: 'add nodes, free resources or lower the requests: the message lists the missing resources',
  },
  {
    reasons: ['Evicted'],
    means: 'the node evicted the pod, usually because it ran out of memory or disk space',
    step: 'set `resources.requests` to the actual usage, or free resources on the node',
  },
  {
    reasons: ['FailedMount', 'FailedAttachVolume'],
    means: 'a volume cannot be mounted',
    step: 'check the Secret, ConfigMap or claim named in the message',
  },
  {
    reasons: ['FailedCreate', 'ReplicaFailure'],
    means: 'the API server rejects the pods: a quota, a pod security level or an admission policy',
    step: 'fix the cause given in the message',
  },
  {
    reasons: ['ProgressDeadlineExceeded'],
    means: 'new pods did not become ready in time',
    step: 'check the newest pods; fix the manifest, or revert the last change',
  },
  {
    reasons: ['Unhealthy', 'ContainersNotReady'],
    means: 'the container runs, but its probe fails',
    step: "read the container's logs",
  },
]
