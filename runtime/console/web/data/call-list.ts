/** The list of calls: loaded rows, and new rows that are not shown yet. */
import type { CallView, StreamEvent } from '../../api.ts'
import { type CallFilter, callTest } from '../../calls/filter.ts'

const mostRows = 200

export interface CallList {
  readonly rows: readonly CallView[]
  /** Calls that are not shown yet, newest first. */
  readonly waiting: readonly CallView[]
}

/** Updates the displayed calls. New calls wait. */
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
  const fresh = [...changed.values()].filter(callTest(filter)).toReversed()
  return { rows, waiting: [...fresh, ...waiting].slice(0, mostRows) }
}

export function withWaiting({ rows, waiting }: CallList): CallList {
  return { rows: [...waiting, ...rows].slice(0, mostRows), waiting: [] }
}
