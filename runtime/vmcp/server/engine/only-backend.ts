/** Determines whether a configuration has a single backend, whose names and addresses clients see unchanged. */
import type { ExcludedBackend, VmcpConfig } from '../../../config/index.ts'

/**
 * Returns the only backend in a configuration, including excluded backends. Returns undefined if there are several
 * backends.
 */
export function onlyBackend(
  { backends = [] }: VmcpConfig,
  invalid: readonly ExcludedBackend[],
): string | undefined {
  const [first, second] = [...backends, ...invalid.filter(({ isUnknown }) => !isUnknown)]
  return second === undefined ? first?.name : undefined
}

/** Returns the names of all backends in a configuration, including excluded backends. */
export function backendNames(
  { backends = [] }: VmcpConfig,
  invalid: readonly ExcludedBackend[],
): ReadonlySet<string> {
  return new Set([...backends, ...invalid].map(({ name }) => name))
}
