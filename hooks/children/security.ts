/**
 * Security contexts for generated pods, which follow the "restricted" Pod Security Standard.
 *
 * OpenShift assigns numeric IDs from the namespace's range, so they are omitted there.
 */
import type { HookSettings } from '../base/settings.ts'

const uid = 1000

/** Returns the pod-level context. */
export function podSecurity(settings: Pick<HookSettings, 'openshift'>): Readonly<Record<string, unknown>> {
  return {
    runAsNonRoot: true,
    ...(!settings.openshift && { runAsUser: uid, runAsGroup: uid, fsGroup: uid }),
    seccompProfile: { type: 'RuntimeDefault' },
  }
}

/** Returns the context for containers that use the runtime image, which may write only to /tmp. */
export function runtimeContainerSecurity(
  settings: Pick<HookSettings, 'openshift'>,
): Readonly<Record<string, unknown>> {
  return { ...serverContainerSecurity(settings), readOnlyRootFilesystem: true }
}

/** Returns the context for containers of third-party images, which may write to their own file system. */
export function serverContainerSecurity(
  settings: Pick<HookSettings, 'openshift'>,
): Readonly<Record<string, unknown>> {
  return {
    privileged: false,
    allowPrivilegeEscalation: false,
    runAsNonRoot: true,
    ...(!settings.openshift && { runAsUser: uid, runAsGroup: uid }),
    capabilities: { drop: ['ALL'] },
  }
}
