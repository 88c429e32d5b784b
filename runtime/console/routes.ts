/** The routes of the console's API, built from the server's view. */
import type { VisitorAccess } from './access/visitor.ts'
import { permissionsOf, type Visitor } from './access/visitor.ts'
import { actionRoutes } from './actions.ts'
import type { Me, Overview } from './api.ts'
import { asSeenBy, callsPage, findCall, payloadOf } from './calls/query.ts'
import type { CallRecorder } from './calls/recorder.ts'
import { backendRows } from './data/backends.ts'
import type { Explain } from './data/explain.ts'
import { limitOf, pageOf, given, iso } from './data/pages.ts'
import { toolDetail, toolList } from './data/tools.ts'
import type { ApiRequest, ApiRoute } from './http/api-route.ts'
import { observedBackend, summarizeBackends } from '../observe/index.ts'
import { pinRoutes } from './pins.ts'
import type { Readers } from './stream/reader.ts'
import type { AppPages } from './tries/app-pages.ts'
import type { Tries } from './tries/tries.ts'
import type { Approver, ConsoleView } from './view.ts'

export interface ConsoleRouteParts {
  readonly recorder: CallRecorder
  readonly readers: Readers
  readonly tries: Tries
  readonly apps: AppPages
  readonly explain: Explain
  readonly approver: Approver
  readonly view: ConsoleView
  readonly access: VisitorAccess
  readonly version: string
  readonly now: () => number
}

export function apiRoutes(parts: ConsoleRouteParts): readonly ApiRoute[] {
  const { view, recorder, now } = parts
  const facts = () => ({ replica: recorder.replica, now: now() })
  // Only users with access to the server may see unapproved definitions.
  const tools = async ({ visitor, permissions }: ApiRequest) =>
    (await view.tools(visitor.caller)).filter(({ refused }) => !refused || permissions.has('overview'))
  return [
    { method: 'GET', path: 'me', handle: ({ visitor }) => meOf(parts, visitor) },
    { method: 'GET', path: 'overview', needs: 'overview', handle: (request) => overviewOf(parts, request) },
    {
      method: 'GET',
      path: 'backends',
      needs: 'overview',
      handle: async (request) =>
        pageOf(
          await backendRows(parts, request),
          { cursor: request.query.get('cursor') ?? undefined, limit: limitOf(request.query) },
          ({ name }) => name,
          facts(),
        ),
    },
    {
      method: 'GET',
      path: 'tools',
      needs: 'tools',
      handle: async (request) => {
        const { query } = request
        const filter = {
          text: query.get('text') || undefined,
          backend: query.get('backend') || undefined,
          pin: query.get('pin') || undefined,
          cursor: query.get('cursor') ?? undefined,
          limit: limitOf(query),
        }
        return toolList(await tools(request), filter, facts())
      },
    },
    {
      method: 'GET',
      path: 'tools/{}',
      needs: 'tools',
      handle: async (request) => toolDetail(await tools(request), request.names[0] ?? '', view.pinDetail),
    },
    {
      method: 'GET',
      path: 'calls',
      needs: 'calls.own',
      handle: (request) => callsPage(recorder, request, now()),
    },
    {
      method: 'GET',
      path: 'calls/{}',
      needs: 'calls.own',
      handle: (request) => asSeenBy(recorder, request)(findCall(recorder, request)),
    },
    {
      method: 'GET',
      path: 'calls/{}/payload',
      needs: 'calls.own',
      action: 'console_payload_viewed',
      handle: (request) => payloadOf(recorder, request),
    },
    ...pinRoutes(parts),
    ...actionRoutes(parts),
    {
      method: 'GET',
      path: 'stream',
      needs: 'calls.own',
      handle: (request) => parts.readers.open(request),
    },
  ]
}

function meOf({ view, access, version, recorder }: ConsoleRouteParts, visitor: Visitor): Me {
  const { user, roles, csrf, freshLogin } = visitor
  return {
    server: view.server,
    version,
    ...given('user', user),
    anonymous: access.anonymous,
    roles,
    permissions: permissionsOf(roles),
    csrf,
    freshLogin,
    replica: recorder.replica,
  }
}

async function overviewOf(parts: ConsoleRouteParts, request: ApiRequest): Promise<Overview> {
  const { view, now, recorder } = parts
  const backends = await backendRows(parts, request)
  const { text, groups } = summarizeBackends(view.backends().map(observedBackend))
  return {
    ...given('summary', text),
    down: groups,
    healthy: backends.some(({ health }) => health === 'healthy' || health === 'degraded'),
    asOf: iso(now()),
    totals: recorder.series.totals(),
    minutes: recorder.series.minutes(),
    sessions: view.sessionCount(),
    problems: view.problems().map(({ type, backend, since, message, fix }) => ({
      type,
      ...given('backend', backend),
      since: iso(since),
      message,
      fix,
    })),
    failures: view.recent().map(({ type, backend, reason, message, fix, count, first, last }) => ({
      type,
      ...given('backend', backend),
      ...given('reason', reason),
      message,
      fix,
      count,
      first: iso(first),
      last: iso(last),
    })),
    backends,
  }
}
