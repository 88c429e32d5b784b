/** The hooks as they run on one machine, and the checks of manifests that go with them. */
import type { Hooks } from './cluster.ts'
import type { ValidateResource } from '../../manifests/check.ts'
import { runtimeImage, version } from '../../terminal/version.ts'

export interface LocalHooks {
  readonly hooks: Hooks
  /** As the webhook would, but for what only a pod cannot do. */
  readonly validate: ValidateResource
}

export async function localHooks(): Promise<LocalHooks> {
  const { hookSettings, makeHooks, validateResource } = await import('../../../../hooks/index.ts')
  const settings = hookSettings({ runtimeImage, version, localCommands: true, allowLoopback: true })
  return { hooks: makeHooks(settings), validate: (doc) => validateResource(doc, { settings }) }
}
