/** The list of calls: rows that came with the page, and those that arrived since and wait to be shown. */
import type { CallView, StreamEvent } from '../../api.ts'

const mostRows = 200

export interface CallFilter {
  readonly caller: string
  readonly backend: string
  readonly tool: string
  readonly outcome: string
  readonly text: string
}

export interface CallList {
  readonly rows: readonly CallView[]
  /** Newest first; not shown yet. */
  readonly waiting: readonly CallView[]
}

/** Calls that are shown change in place; others wait. */
export function withEvents(list: CallList, events: readonly StreamEvent[], filter: CallFilter): CallList {
  const changed = new Map<string, CallView>()
  for (const event of events)
    if (event.type === 'calls') for (const call of event.items) changed.set(call.id, call)
  if (changed.size === 0) return list
  const update = (call: CallView): CallView => {
    const next = changed.get(call.id)
    changed.delete(call.id)
    return next ?? call
  }
  const rows = list.rows.map(update)
  const waiting = list.waiting.map(update)
  const fresh = [...changed.values()].filter((call) => fits(call, filter)).toReversed()
  return { rows, waiting: [...fresh, ...waiting].slice(0, mostRows) }
}

export function withWaiting({ rows, waiting }: CallList): CallList {
  return { rows: [...waiting, ...rows].slice(0, mostRows), waiting: [] }
}

function fits(call: CallView, { caller, backend, tool, outcome, text }: CallFilter): boolean {
  const has = (whole: string | undefined, part: string): boolean =>
    whole?.toLowerCase().includes(part.toLowerCase()) ?? false
  const { sub, name } = call.caller ?? {}
  return (
    (caller === '' || sub === caller || name === caller) &&
    (backend === '' || call.backend === backend) &&
    (tool === '' || call.name === tool || call.original === tool) &&
    (outcome === '' || call.outcome === outcome) &&
    (text === '' ||
      [call.name, call.original, sub, name, call.method, call.error?.message].some((one) => has(one, text)))
  )
}
