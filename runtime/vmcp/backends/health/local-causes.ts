/**
 * Causes of failures on this machine. `gatehouse dev` and `gatehouse run` start the backends' programs and write each
 * program's state to a file. The virtual server can then report an exit code instead of a refused connection.
 */
import { readFileSync } from 'node:fs'
import { isFields, jsonFields } from '../../../../schemas/index.ts'
import { vmcpEnvironment } from '../../../config/index.ts'
import type { Cause } from '../../../observe/index.ts'

/**
 * Returns a function that reads the cause of a backend's failure from the current file. Returns undefined if no file is
 * configured.
 */
export function localCauses(
  env: Readonly<Record<string, string | undefined>>,
): ((name: string) => Cause | undefined) | undefined {
  const path = env[vmcpEnvironment.localCauses]
  return path ? (name) => causeIn(path, name) : undefined
}

/** Returns undefined if the file is missing or unreadable, or contains no cause for this backend. */
function causeIn(path: string, name: string): Cause | undefined {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
  const causes = jsonFields(text) ?? {}
  const cause = Object.hasOwn(causes, name) ? causes[name] : undefined
  return isFields(cause) && typeof cause['category'] === 'string' ? (cause as unknown as Cause) : undefined
}
