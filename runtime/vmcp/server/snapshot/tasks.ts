/** Live tasks for the console. A cancellation runs as the client that created the task. */
import { GatehouseError } from '../../../../schemas/index.ts'
import { JsonObject } from '../../../mcp/index.ts'
import type { ShownTask } from '../../../observe/index.ts'
import type { LiveTasks } from '../../features/tasks/live-tasks.ts'
import type { Perform } from '../../model/operation.ts'
import type { ClientSession } from '../../model/session.ts'

const cancelMs = 10_000

export function shownTasks(live: Pick<LiveTasks, 'all'>): readonly ShownTask[] {
  return live.all().map(({ ref, client: { caller }, startedAt, endsAt, state }) => ({
    hash: ref.hash,
    owner: caller.key,
    subject: caller.subject,
    displayName: caller.displayName,
    actor: caller.facts?.actor,
    tool: ref.tool,
    backend: ref.backend === '' ? undefined : ref.backend,
    state,
    startedAt,
    endsAt,
  }))
}

export interface CancelParts {
  readonly live: Pick<LiveTasks, 'all'>
  readonly perform: Perform
  readonly endBackendSessions: (session: ClientSession) => void
}

/**
 * Cancels a task. Resolves to false if this replica has no live task with this hash, or the backend no longer has the
 * task. Rejects with the error of the cancellation, for example if the backend does not respond.
 */
export async function cancelTask(
  { live, perform, endBackendSessions }: CancelParts,
  hash: string,
): Promise<boolean> {
  const task = live.all().find(({ ref }) => ref.hash === hash)
  if (!task) return false
  const { client } = task
  const session = client.session?.isOver ? replacement(client.session) : undefined
  const outcome = await perform({
    method: 'tasks/cancel',
    params: new JsonObject(Buffer.from(JSON.stringify({ taskId: task.ref.id }))),
    client: session ? { ...client, session } : client,
    context: {
      signal: AbortSignal.timeout(cancelMs),
      progressToken: undefined,
      logLevel: undefined,
      progress: unused,
      log: unused,
      ask: rejectAsk,
    },
  })
    .catch((error: unknown) => {
      if (error instanceof GatehouseError && error.code === 'INVALID_PARAMS') return undefined
      throw error
    })
    .finally(() => session && endBackendSessions(session))
  if (!outcome) return false
  if (outcome.kind === 'error')
    throw new GatehouseError('BACKEND_PROTOCOL', { detail: 'the backend did not cancel the task' })
  return true
}

/** Returns a session that stands for an ended session, because backends open no connection for an ended session. */
function replacement({ id }: ClientSession): ClientSession {
  return { id, deliver: unused, ask: rejectAsk }
}

function unused(): void {}

function rejectAsk(): Promise<never> {
  return Promise.reject(
    new GatehouseError('CAPABILITY_REQUIRED', { detail: 'a cancellation cannot be answered' }),
  )
}
