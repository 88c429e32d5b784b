/** The backends that a virtual server's spec names. */
import { type UnknownBackend, unknownBackends, type VirtualMCPServerSpec } from '../../schemas/index.ts'

/** One violation for each name that is not among `known`. */
export function unknownBackendsOf(
  { outgoingAuth, config }: VirtualMCPServerSpec,
  known: readonly string[],
): readonly UnknownBackend[] {
  // config.outgoingAuth is superseded: nothing reads it.
  const { aggregation, operational } = config ?? {}
  return [
    ...unknownBackends({ outgoingAuth }, known, 'spec'),
    ...unknownBackends({ aggregation, operational }, known, 'spec.config'),
  ]
}
