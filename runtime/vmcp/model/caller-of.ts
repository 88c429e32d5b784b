/** Attributes work in a worker to the caller, or to one session when callers cannot be distinguished. */
import { localIssuer } from '../../net/index.ts'
import type { OperationClient } from './session.ts'

/** Returns the key for counting. It may contain a session id and must not be logged. */
export function callerOf({ caller, session }: Pick<OperationClient, 'caller' | 'session'>): string {
  return caller.issuer === localIssuer && session ? `${caller.key}\0${session.id}` : caller.key
}
