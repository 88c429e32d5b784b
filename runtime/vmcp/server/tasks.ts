/** Creates the tasks of a virtual server, and decides whether clients see them. */
import { type VmcpConfig, vmcpEnvironment } from '../../config/index.ts'
import type { Log } from '../../net/index.ts'
import { backendIdentity } from '../backends/settings.ts'
import type { SharedSecret } from '../clients/sessions/shared-secret.ts'
import type { VmcpEngine } from './engine/engine.ts'
import { serverScope, type SessionStorage } from '../clients/sessions/storage.ts'
import { makeMemoryStore, type Store } from '../../store/index.ts'
import { makeTasks, type TaskFeature, taskSettings } from '../features/tasks/index.ts'

/**
 * Limits of a store in memory. Each task uses two entries, and more while other requests about it arrive. Escaping can
 * double the size of JSON text; even then, the limits of stored tasks apply first.
 */
export const taskStoreLimits = { maxEntries: 400_000, maxBytes: 1024 * 1024 * 1024 } as const

export interface ServerTasksOptions {
  readonly env: Readonly<Record<string, string | undefined>>
  /** Key material that the replicas share. */
  readonly secret: Pick<SharedSecret, 'values'>
  /** The store that replicas share. Undefined if sessions stay in this process. */
  readonly storage: Pick<SessionStorage, 'store' | 'isWorkerStore'> | undefined
  /** The store that several processes on one port share if there is no Redis. */
  readonly workerStore: Store | undefined
  readonly log: Log
  readonly now: () => number
}

/** `current` contains the current configuration. */
export function makeServerTasks(
  engine: Pick<VmcpEngine, 'core' | 'endSession'>,
  current: { readonly config: VmcpConfig },
  { env, secret, storage, workerStore, log, now }: ServerTasksOptions,
): TaskFeature {
  let read: { readonly extensions: unknown; readonly settings: ReturnType<typeof taskSettings> } | undefined
  return makeTasks({
    settings() {
      const { extensions } = current.config
      if (!read || read.extensions !== extensions) read = { extensions, settings: taskSettings(extensions) }
      return read.settings
    },
    server: serverScope(current.config, env),
    secrets: () => secret.values,
    // Without a shared key, another replica could not open the ids. In a cluster, there may be other replicas.
    isShared: () => secret.values.length > 0 || !(storage || env[vmcpEnvironment.namespace]),
    backendFacts(name) {
      const found = engine.core.parts.members.get(name)?.backend.settings
      return found && { identity: backendIdentity(found), timeoutMs: found.timeoutMs }
    },
    endSession: (...session) => engine.endSession(...session),
    store:
      (storage?.isWorkerStore ? workerStore : storage?.store.namespace('tasks:')) ??
      makeMemoryStore({ now, ...taskStoreLimits }),
    log,
    now,
  })
}
