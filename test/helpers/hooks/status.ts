/** Validates the status that hooks produce. */
import type { KindName } from '../../../schemas/index.ts'
import * as compiled from '../../../schemas/generated/status-validators.js'
import { definition } from '../../../schemas/validation/bundle.ts'
import { filled } from '../../../schemas/validation/defaults.ts'
import { checker } from '../../../schemas/validation/validate.ts'
import type { Violation } from '../../../schemas/validation/violations.ts'

const check = checker(compiled)

/** Returns the problems with a status that the hooks produced for `kind`. Paths start with `status`. */
export function validateStatus(kind: KindName, status: unknown): readonly Violation[] {
  return check(`${kind}Status`, filled(definition(`${kind}Status`), status)).map(({ path, message }) => ({
    path: path === '' ? 'status' : path.startsWith('[') ? `status${path}` : `status.${path}`,
    message,
  }))
}
