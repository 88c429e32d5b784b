/** Whom work in a worker is counted for: the caller, or one session where callers cannot be told apart. */
import { localIssuer } from '../../net/index.ts'
import type { OperationClient } from './session.ts'

/** A key for counting. Not for logs: it may contain the id of a session. */
export function callerOf({ caller, session }: Pick<OperationClient, 'caller' | 'session'>): string {
  return caller.issuer === localIssuer && session ? `${caller.key}\0${session.id}` : caller.key
}
