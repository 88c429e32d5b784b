/**
 * Security contexts of generated pods: the "restricted" Pod Security Standard.
 *
 * On OpenShift the numeric ids are left out, because the platform assigns them from the namespace's range.
 */
import type { HookSettings } from '../base/settings.ts'

const uid = 1000

/** Pod-level context. */
export function podSecurity(settings: Pick<HookSettings, 'openshift'>): Readonly<Record<string, unknown>> {
  return {
    runAsNonRoot: true,
    ...(!settings.openshift && { runAsUser: uid, runAsGroup: uid, fsGroup: uid }),
    seccompProfile: { type: 'RuntimeDefault' },
  }
}

/** Context of a container of the runtime image: nothing but /tmp can be written. */
export function runtimeContainerSecurity(
  settings: Pick<HookSettings, 'openshift'>,
): Readonly<Record<string, unknown>> {
  return { ...serverContainerSecurity(settings), readOnlyRootFilesystem: true }
}

/** Context of a container of somebody else's image, which may write to its own file system. */
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
