import { isFields } from '../../../../schemas/index.ts'
import { type PrimaryLink } from '../../../process/index.ts'
import { sessionCalls } from '../sessions/other-workers.ts'
import type { SessionTable } from '../sessions/table.ts'

/** Offers calls to other workers that change this worker's copies of sessions. */
export function offerSessions({ offer }: Pick<PrimaryLink, 'offer'>, table: SessionTable): void {
  offer({
    [sessionCalls.cancel](told) {
      const { session, request } = isFields(told) ? told : {}
      table.peek(String(session))?.cancelRequest(String(request))
    },
    [sessionCalls.push](told) {
      const { session, message } = isFields(told) ? told : {}
      const copy = table.peek(String(session))
      return message instanceof Uint8Array && copy?.pushOnStream(Buffer.from(message)) === true
    },
    [sessionCalls.changed](told) {
      const { session } = isFields(told) ? told : {}
      table.invalidate(String(session))
    },
    [sessionCalls.ended](told) {
      const { session } = isFields(told) ? told : {}
      table.endCopy(String(session))
    },
  })
}
