/** Reasons that Kubernetes gives for pods, containers and workloads. */
import type { ReasonRow } from './row.ts'

export const podReasons: readonly ReasonRow[] = [
  {
    reasons: ['ImagePullBackOff', 'ErrImagePull', 'ErrImageNeverPull', 'ImageInspectError'],
    means: 'the image cannot be fetched',
    step: 'check the name of the image and `imagePullSecrets`',
  },
  { reasons: ['InvalidImageName'], means: 'the name of the image is none', step: 'check `spec.image`' },
  {
    reasons: ['CreateContainerConfigError'],
    means: 'a Secret or ConfigMap that the container needs, or a key of it, is missing',
    step: 'check the Secrets and ConfigMaps that the server names',
  },
  {
    reasons: ['CreateContainerError', 'RunContainerError', 'ContainerCannotRun', 'StartError'],
    means: 'the container cannot be started: often its command does not exist in the image',
    step: 'check `command` and `args`; the message says what the node said',
  },
  {
    reasons: ['OOMKilled'],
    means: 'the container used more memory than its limit',
    step: 'raise `resources.limits.memory` of the container',
  },
  {
    reasons: ['Unschedulable'],
    means: 'no node takes the pod',
    step: 'add or free nodes, or ask for less: the message says what no node has',
  },
  {
    reasons: ['Evicted'],
    means: 'the node had to remove the pod, mostly for want of memory or disk',
    step: 'request what the pod uses, or free the node',
  },
  {
    reasons: ['FailedMount', 'FailedAttachVolume'],
    means: 'a volume cannot be mounted',
    step: 'check the Secret, ConfigMap or claim that the message names',
  },
  {
    reasons: ['FailedCreate', 'ReplicaFailure'],
    means: 'the API server refuses the pods: a quota, a pod security level or an admission policy',
    step: 'mend what the message names',
  },
  {
    reasons: ['ProgressDeadlineExceeded'],
    means: 'new pods did not become ready in time',
    step: 'look at the newest pods; mend the manifest, or take the last change back',
  },
  {
    reasons: ['Unhealthy', 'ContainersNotReady'],
    means: 'the container runs and does not pass its probe',
    step: 'read the logs of the container',
  },
]
