import { causeFix, causeText } from '../../observe/index.ts'
import type { BackendView } from '../api.ts'
import type { CallRecorder } from '../calls/recorder.ts'
import type { ApiRequest } from '../http/api-route.ts'
import type { ConsoleBackend, ConsoleView } from '../view.ts'
import { given, iso } from './pages.ts'

/** Returns all backends, sorted by name, with the number of tools that the visitor may call. */
export async function backendRows(
  { view, recorder }: { readonly view: ConsoleView; readonly recorder: CallRecorder },
  { visitor }: ApiRequest,
): Promise<readonly BackendView[]> {
  const counts = new Map<string, number>()
  for (const { backend, hidden } of await view.tools(visitor.caller))
    if (hidden === undefined) counts.set(backend, (counts.get(backend) ?? 0) + 1)
  return view.backends().map((facts) => ({
    ...backendRow(facts, counts.get(facts.name) ?? 0, recorder.series.minutes(facts.name)),
    ...given('signInUrl', view.signInUrl?.(facts.name)),
  }))
}

function backendRow(facts: ConsoleBackend, tools: number, minutes: BackendView['minutes']): BackendView {
  const { name, transport, authType, era, revision, health, calls, excluded } = facts
  const sum = (key: 'calls' | 'failed'): number => minutes.reduce((all, minute) => all + minute[key], 0)
  const { lastTransitionAt, lastError, circuit } = health
  return {
    name,
    health: health.status,
    ...given('since', lastTransitionAt === undefined ? undefined : iso(lastTransitionAt)),
    transport,
    authType,
    era,
    ...given('revision', revision),
    tools,
    calls: sum('calls'),
    failed: sum('failed'),
    ...calls.latencyMs,
    ...given('circuit', circuit && { state: circuit.state, ...sinceOf(circuit.changedAt) }),
    ...given(
      'lastError',
      lastError && {
        category: lastError.category,
        message: causeText(lastError),
        fix: causeFix(lastError, name),
        at: iso(lastError.at),
      },
    ),
    ...given('excluded', excluded),
    minutes,
  }
}

function sinceOf(ms: number): { readonly since?: string } {
  return ms > 0 ? { since: iso(ms) } : {}
}
