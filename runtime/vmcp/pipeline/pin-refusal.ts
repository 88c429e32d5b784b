/** How calls end that pinning does not let through. */
import { GatehouseError } from '../../../schemas/index.ts'
import { annotateDenial, visibleText } from '../../observe/index.ts'
import type { PinReason } from '../catalog/pinning/parts.ts'
import type { RefusedEntry } from '../catalog/types.ts'
import { type Outcome, toolErrorOutcome } from './operation.ts'

/** A call of something that is not as it was approved. */
export interface PinRefusal {
  readonly backend: string
  readonly name: string
  readonly reason: PinReason
  readonly method: string
}

const maxName = 128
const maxViolations = 10

/** As a denial by a policy: who calls learns no more; why it was stands in audit, log and status. */
export function refusal(
  { backend, original, refused }: RefusedEntry,
  method: string,
  tell: (refusal: PinRefusal) => void,
): GatehouseError {
  annotateDenial(refused)
  tell({ backend, name: visibleText(original.slice(0, maxName)).slice(0, maxName), reason: refused, method })
  return new GatehouseError('FORBIDDEN')
}

/** A model can correct the arguments of a tool; a prompt is asked for by a program. Throws INVALID_PARAMS for the latter. */
export function unfitArguments(method: string, violations: readonly string[]): Outcome {
  const text = `the arguments do not fit: ${violations.slice(0, maxViolations).join('; ')}`
  if (method === 'tools/call') return toolErrorOutcome(text)
  throw new GatehouseError('INVALID_PARAMS', { detail: `Invalid params: ${text}` })
}
