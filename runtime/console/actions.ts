/** API routes for sessions, settings and tries, and all routes that make changes. */
import { GatehouseError, byText } from '../../schemas/index.ts'
import type { CallRecorder } from './calls/recorder.ts'
import { backendRows } from './data/backends.ts'
import { configView } from './data/config.ts'
import { connectPage } from './data/connect.ts'
import { type Explain, explained } from './data/explain.ts'
import { limitOf, pageOf } from './data/pages.ts'
import { policiesPage } from './data/policies.ts'
import { sessionRow, taskRow } from './data/sessions.ts'
import type { ApiRequest, ApiRoute } from './http/api-route.ts'
import type { AppPages } from './tries/app-pages.ts'
import type { Tries } from './tries/tries.ts'
import type { ShownSession, ShownTask } from '../observe/index.ts'
import type { ConsoleView } from './view.ts'

export interface ActionParts {
  readonly view: ConsoleView
  readonly recorder: CallRecorder
  readonly tries: Tries
  readonly apps: AppPages
  readonly explain: Explain
  readonly now: () => number
}

export function actionRoutes({
  view,
  recorder,
  tries,
  apps,
  explain,
  now,
}: ActionParts): readonly ApiRoute[] {
  return [
    {
      method: 'GET',
      path: 'sessions',
      handle: (request) => {
        const { query } = request
        const page = { cursor: query.get('cursor') ?? undefined, limit: limitOf(query) }
        const facts = { replica: recorder.replica, now: now() }
        const found = pageOf(sessionsOf(view, request), page, ({ hash }) => hash, facts)
        return { ...found, items: found.items.map((one) => sessionRow(one, request.visitor.caller.key)) }
      },
    },
    {
      method: 'DELETE',
      path: 'sessions/{}',
      action: 'console_session_ended',
      handle: (request) => endSession(view, request),
    },
    {
      method: 'GET',
      path: 'tasks',
      handle: (request) => {
        const { query, visitor } = request
        const page = { cursor: query.get('cursor') ?? undefined, limit: limitOf(query) }
        const facts = { replica: recorder.replica, now: now() }
        const found = pageOf(tasksOf(view, request), page, ({ hash }) => hash, facts)
        return { ...found, items: found.items.map((task) => taskRow(task, visitor.caller.key)) }
      },
    },
    {
      method: 'DELETE',
      path: 'tasks/{}',
      action: 'console_task_cancelled',
      handle: (request) => cancelTask(view, request),
    },
    { method: 'GET', path: 'policies', needs: 'policies', handle: () => policiesPage(view, recorder) },
    {
      method: 'POST',
      path: 'policies/explain',
      needs: 'explain',
      action: 'console_decision_explained',
      handle: (request) => explained(explain, request),
    },
    { method: 'GET', path: 'config', needs: 'config', handle: () => configView(view) },
    {
      method: 'GET',
      path: 'connect',
      handle: ({ visitor }) => connectPage(view, recorder.firstCallOf(visitor.caller.key)),
    },
    {
      method: 'POST',
      path: 'backends/{}/recheck',
      needs: 'recheck',
      fresh: true,
      action: 'console_backend_rechecked',
      handle: (request) => recheck(view, recorder, request),
    },
    {
      method: 'POST',
      path: 'tries',
      needs: 'try',
      action: 'console_tool_tried',
      handle: (request) => tries.start(request),
    },
    { method: 'GET', path: 'tries/{}/events', needs: 'try', handle: (request) => tries.events(request) },
    {
      method: 'POST',
      path: 'tries/{}/answers/{}',
      needs: 'try',
      handle: (request) => tries.answer(request),
    },
    { method: 'DELETE', path: 'tries/{}', needs: 'try', handle: (request) => tries.cancel(request) },
    { method: 'POST', path: 'apps', needs: 'try', handle: (request) => apps.open(request) },
  ]
}

/** Returns the visitor's sessions, or all sessions, sorted by hash. */
function sessionsOf(view: ConsoleView, { visitor, permissions }: ApiRequest): readonly ShownSession[] {
  const seesAll = permissions.has('sessions.all')
  return view
    .sessions()
    .filter(({ owner }) => seesAll || owner === visitor.caller.key)
    .sort((a, b) => byText(a.hash, b.hash))
}

/** Ends the visitor's own session; operators can end any session. Throws NOT_FOUND, FORBIDDEN or LOGIN_TOO_OLD. */
async function endSession(
  view: ConsoleView,
  { visitor, permissions, names }: ApiRequest,
): Promise<undefined> {
  const [hash = ''] = names
  const facts = view.sessions().find((session) => session.hash === hash)
  const isOwn = facts?.owner === visitor.caller.key
  if (!isOwn) requireOperator({ visitor, permissions }, 'session')
  if (!(await view.endSession(hash))) throw unknown('session')
}

/** Throws NOT_FOUND, FORBIDDEN or LOGIN_TOO_OLD unless the visitor may end the sessions and tasks of other users. */
function requireOperator(
  { visitor, permissions }: Pick<ApiRequest, 'visitor' | 'permissions'>,
  what: string,
): void {
  if (!permissions.has('sessions.all')) throw unknown(what)
  if (!permissions.has('sessions.end'))
    throw new GatehouseError('FORBIDDEN', { detail: 'the permission sessions.end is required' })
  if (!visitor.freshLogin) throw new GatehouseError('LOGIN_TOO_OLD')
}

function unknown(what: string): GatehouseError {
  return new GatehouseError('NOT_FOUND', { detail: `unknown ${what}` })
}

/** Returns the visitor's tasks, or all tasks, sorted by hash. */
function tasksOf(view: ConsoleView, { visitor, permissions }: ApiRequest): readonly ShownTask[] {
  const seesAll = permissions.has('sessions.all')
  return view
    .tasks()
    .filter(({ owner }) => seesAll || owner === visitor.caller.key)
    .sort((a, b) => byText(a.hash, b.hash))
}

/** Cancels the visitor's own task; operators can cancel any task. Throws NOT_FOUND, FORBIDDEN or LOGIN_TOO_OLD. */
async function cancelTask(
  view: ConsoleView,
  { visitor, permissions, names }: ApiRequest,
): Promise<undefined> {
  const [hash = ''] = names
  const isOwn = view.tasks().some((task) => task.hash === hash && task.owner === visitor.caller.key)
  if (!isOwn) requireOperator({ visitor, permissions }, 'task')
  if (!(await view.cancelTask(hash))) throw unknown('task')
}

async function recheck(view: ConsoleView, recorder: CallRecorder, request: ApiRequest) {
  const [name = ''] = request.names
  const isKnown = await view.recheck(name)
  const row = (await backendRows({ view, recorder }, request)).find((backend) => backend.name === name)
  if (!isKnown || !row) throw new GatehouseError('NOT_FOUND', { detail: 'unknown backend' })
  return row
}
