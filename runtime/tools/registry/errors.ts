import { ModuleError } from '../../../schemas/index.ts'
import { failureOf, FetchRefusedError, networkFailureText } from '../../net/index.ts'

/** The registry's entry is missing, deleted, changed, invalid, or contains something that Gatehouse rejects. */
export class EntryRejected extends ModuleError {}

/** Returns the reason why a request failed, without the query and credentials. */
export function requestFailure(error: unknown): string {
  return error instanceof FetchRefusedError ? error.message : networkFailureText(failureOf(error))
}
