/** What a worker does to its copies of sessions when another one asks for it. */
import { isFields } from '../../../../schemas/index.ts'
import { type PrimaryLink } from '../../../process/index.ts'
import { sessionCalls } from '../sessions/elsewhere.ts'
import type { SessionTable } from '../sessions/table.ts'

/** Does here what the others ask for. */
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
      table.changedElsewhere(String(session))
    },
    [sessionCalls.ended](told) {
      const { session } = isFields(told) ? told : {}
      table.endedElsewhere(String(session))
    },
  })
}
