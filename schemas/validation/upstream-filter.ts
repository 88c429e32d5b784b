/** Checks the names in an upstream filter, for admission and for the runtime. */
import type { UpstreamFilter } from '../generated/types.ts'
import type { Violation } from './violations.ts'

/** Returns the names that belong to no upstream provider. Paths are relative to the filter. */
export function unknownUpstreams(
  { rules, defaultUpstreams = [] }: UpstreamFilter,
  known: readonly string[],
): readonly Violation[] {
  const lists = [
    ...rules.map(
      ({ upstreamProviders }, index) => [`rules[${index}].upstreamProviders`, upstreamProviders] as const,
    ),
    ['defaultUpstreams', defaultUpstreams] as const,
  ]
  return lists.flatMap(([list, names]) =>
    names.flatMap((name, index) =>
      known.includes(name)
        ? []
        : [
            {
              path: `${list}[${index}]`,
              message: `must be the name of one of upstreamProviders, found "${name}"`,
            },
          ],
    ),
  )
}
