/** Creates the tasks of a virtual server, and decides whether clients see them. */
import { type VmcpConfig, vmcpEnvironment } from '../../config/index.ts'
import { backendIdentity } from '../backends/backend-identity.ts'
import type { Core } from '../call/core.ts'
import { serverScope } from '../clients/sessions/storage.ts'
import { makeTasks, type Tasks, taskSettings } from '../features/tasks/index.ts'

export interface ServerTasksOptions {
  readonly core: Core
  readonly env: Readonly<Record<string, string | undefined>>
  /** Returns key material that the replicas share. */
  readonly secret: () => string | undefined
  /** True if sessions are stored outside this process, so other processes may serve the same clients. */
  readonly hasStorage: boolean
  readonly now: () => number
}

/** `config` returns the current configuration. */
export function makeServerTasks(config: () => VmcpConfig, options: ServerTasksOptions): Tasks {
  const { core, env, secret, now } = options
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
    isShared: () => secret() !== undefined || !(options.hasStorage || env[vmcpEnvironment.namespace]),
    backendFacts(name) {
      const found = core.parts.members.get(name)?.backend.settings
      return found && { identity: backendIdentity(found), timeoutMs: found.timeoutMs }
    },
    now,
  })
}
