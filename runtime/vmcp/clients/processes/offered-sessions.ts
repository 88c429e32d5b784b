import { isFields } from '../../../../schemas/index.ts'
import { type PrimaryLink } from '../../../process/index.ts'
import { sessionCalls } from '../sessions/other-workers.ts'
import type { SessionTable } from '../sessions/table.ts'

/** Offers the calls that other workers use to change this worker's copies of sessions. */
export function offerSessions({ offer }: Pick<PrimaryLink, 'offer'>, table: SessionTable): void {
  offer({
    [sessionCalls.cancel](payload) {
      const { session, request } = isFields(payload) ? payload : {}
      table.peek(String(session))?.cancelRequest(String(request))
    },
    [sessionCalls.push](payload) {
      const { session, message } = isFields(payload) ? payload : {}
      const copy = table.peek(String(session))
      return message instanceof Uint8Array && copy?.pushOnStream(Buffer.from(message)) === true
    },
    [sessionCalls.changed](payload) {
      const { session } = isFields(payload) ? payload : {}
      table.invalidate(String(session))
    },
    [sessionCalls.ended](payload) {
      const { session } = isFields(payload) ? payload : {}
      table.endCopy(String(session))
    },
  })
}
