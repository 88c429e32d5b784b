/**
 * Returns the kstatus of an object of an unknown kind, which Flux and `kubectl` plug-ins wait for. Source: Kubernetes
 * cli-utils, kstatus, "Rules" of the generic status reader.
 */
interface Waited {
  readonly metadata: Readonly<Record<string, unknown>>
  readonly status?: unknown
}

export function kstatusOf({ metadata, status }: Waited): 'Terminating' | 'InProgress' | 'Failed' | 'Current' {
  const { observedGeneration, conditions = [] } = (status ?? {}) as {
    observedGeneration?: number
    conditions?: { type: string; status: string }[]
  }
  const valueOf = (type: string) => conditions.find((item) => item.type === type)?.status
  if (metadata['deletionTimestamp'] !== undefined) return 'Terminating'
  if (observedGeneration !== undefined && observedGeneration !== metadata['generation']) return 'InProgress'
  if (valueOf('Reconciling') === 'True') return 'InProgress'
  if (valueOf('Stalled') === 'True') return 'Failed'
  const ready = valueOf('Ready')
  return ready === undefined || ready === 'True' ? 'Current' : 'InProgress'
}

/** True when `kubectl wait --for=condition=Ready` ends: the condition must be of the current generation. */
export function isWaitOver({ metadata, status }: Waited): boolean {
  const { conditions = [] } = (status ?? {}) as {
    conditions?: { type: string; status: string; observedGeneration?: number }[]
  }
  const ready = conditions.find(({ type }) => type === 'Ready')
  return ready?.status === 'True' && ready.observedGeneration === metadata['generation']
}
