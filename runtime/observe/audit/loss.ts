/**
 * Reports lost audit lines, and the recovery after a period without losses. A reader that is occasionally too slow
 * counts as one problem, not many.
 */
import type { Events } from '../events/stream.ts'
import { unheldTimer } from '../events/log-view.ts'
import type { LineWatch } from '../line-file.ts'

const quietMs = 5 * 60_000

export function reportLoss(events: Events, after = unheldTimer): LineWatch {
  let cancel: (() => void) | undefined
  return {
    onLoss(lines, err) {
      cancel?.()
      cancel = undefined
      events.emit('audit_lost', { lines, err })
    },
    onWritten() {
      cancel?.()
      cancel = after(quietMs, () => events.emit('audit_recovered', {}))
    },
  }
}
