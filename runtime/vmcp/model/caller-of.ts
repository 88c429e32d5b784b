import { localIssuer } from '../../net/index.ts'
import type { OperationClient } from './session.ts'

/**
 * Returns the key for counting a caller's work. The result is the caller's key, plus the session id if callers cannot
 * be distinguished. The key may contain a session id and must not be logged.
 */
export function callerOf({ caller, session }: Pick<OperationClient, 'caller' | 'session'>): string {
  return caller.issuer === localIssuer && session ? `${caller.key}\0${session.id}` : caller.key
}
