/** The backends that a virtual server's spec names. */
import { type NamingSettings, type UnknownBackend, unknownBackends } from '../../schemas/index.ts'

/** The parts of the spec that name backends; may be of any state. */
interface NamingSpec {
  readonly outgoingAuth?: unknown
  readonly config?: Pick<NamingSettings, 'aggregation' | 'operational' | 'compositeTools'> | null | undefined
}

/** One violation for each name that is not among `known`. */
export function unknownBackendsOf(
  { outgoingAuth, config }: NamingSpec,
  known: readonly string[],
): readonly UnknownBackend[] {
  // config.outgoingAuth is superseded: nothing reads it.
  const { aggregation, operational, compositeTools } = config ?? {}
  return [
    ...unknownBackends({ outgoingAuth }, known, 'spec'),
    ...unknownBackends({ aggregation, operational, compositeTools }, known, 'spec.config'),
  ]
}
