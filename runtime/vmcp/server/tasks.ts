/** Creates the tasks of a virtual server, and decides whether clients see them. */
import { type VmcpConfig, vmcpEnvironment } from '../../config/index.ts'
import { backendIdentity } from '../backends/backend-identity.ts'
import type { Core } from '../call/core.ts'
import type { ClientSession } from '../model/session.ts'
import { serverScope, type SessionStorage } from '../clients/sessions/storage.ts'
import { makeMemoryStore } from '../../store/index.ts'
import { makeTasks, type Tasks, taskSettings } from '../features/tasks/index.ts'

/** Maximum number of entries in memory. Each task uses two, and more while other requests about it arrive. */
const maxStoreEntries = 400_000

export interface ServerTasksOptions {
  readonly core: Core
  readonly env: Readonly<Record<string, string | undefined>>
  /** Returns key material that the replicas share. */
  readonly secret: () => string | undefined
  /** The store that replicas share. Undefined if sessions stay in this process. */
  readonly storage: Pick<SessionStorage, 'store'> | undefined
  readonly endSession: (session: ClientSession, options: { readonly gone: boolean }) => void
  readonly now: () => number
}

/** `config` returns the current configuration. */
export function makeServerTasks(config: () => VmcpConfig, options: ServerTasksOptions): Tasks {
  const { core, env, secret, storage, now } = options
  let read: { readonly extensions: unknown; readonly settings: ReturnType<typeof taskSettings> } | undefined
  return makeTasks({
    settings() {
      const { extensions } = config()
      if (read?.extensions !== extensions || !read) read = { extensions, settings: taskSettings(extensions) }
      return read.settings
    },
    server: serverScope(config(), env),
    secret,
    // Without a shared key, another replica could not open the ids. In a cluster, there may be other replicas.
    isShared: () => secret() !== undefined || !(storage || env[vmcpEnvironment.namespace]),
    backendFacts(name) {
      const found = core.parts.members.get(name)?.backend.settings
      return found && { identity: backendIdentity(found), timeoutMs: found.timeoutMs }
    },
    endSession: options.endSession,
    store: storage?.store.namespace('tasks:') ?? makeMemoryStore({ now, maxEntries: maxStoreEntries }),
    now,
  })
}
