import { localIssuer } from '../../net/index.ts'
import type { OperationClient } from './session.ts'

/**
 * Returns the key under which a caller's work is counted: the caller's key, or the session if callers cannot be
 * distinguished. It may contain a session id and must not be logged.
 */
export function callerOf({ caller, session }: Pick<OperationClient, 'caller' | 'session'>): string {
  return caller.issuer === localIssuer && session ? `${caller.key}\0${session.id}` : caller.key
}
