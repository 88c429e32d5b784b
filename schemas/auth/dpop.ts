/** Checks that a server accepts the tokens that its embedded authorization server issues (DPoP, RFC 9449). */
import type { Dpop } from '../generated/types.ts'

type Mode = Pick<Dpop, 'mode'>

/**
 * Returns the error in the server's own `dpop.mode`; undefined if the mode is compatible with the authorization
 * server's mode.
 */
export function dpopModeViolation(issued: Mode | undefined, own: Mode | undefined): string | undefined {
  const [issues = 'off', accepts = 'off'] = [issued?.mode, own?.mode]
  if (issues !== 'off' && accepts === 'off')
    return 'must not be off, because the embedded authorization server issues bound tokens'
  if (issues === 'off' && accepts === 'required')
    return 'must not be required, because the embedded authorization server issues no bound tokens'
  return undefined
}
