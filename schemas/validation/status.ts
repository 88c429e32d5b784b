/** Validates the status that hooks produce. Only tests use this module. */
import type { KindName } from '../kinds.ts'
import * as compiled from '../generated/status-validators.js'
import { definition } from './bundle.ts'
import { filled } from './defaults.ts'
import { checker } from './validate.ts'
import type { Violation } from './violations.ts'

const check = checker(compiled)

/** Returns the problems with a status that the hooks produced for `kind`. Paths start with `status`. */
export function validateStatus(kind: KindName, status: unknown): readonly Violation[] {
  return check(`${kind}Status`, filled(definition(`${kind}Status`), status)).map(({ path, message }) => ({
    path: path === '' ? 'status' : path.startsWith('[') ? `status${path}` : `status.${path}`,
    message,
  }))
}
