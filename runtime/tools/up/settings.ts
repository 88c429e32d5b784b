/** Converts the confirmed choices to settings for a restart. */
import { type ClientEntry, referencesOf } from '../../toolkit/clients/index.ts'
import type { ReferenceLookup } from '../../toolkit/client-files/references.ts'
import type { UpPlan } from './plan.ts'
import type { UpSettings } from './state.ts'

export function settingsFor(
  { files, chosen, skipped, targets }: UpPlan,
  more: Pick<UpSettings, 'port' | 'login' | 'startTimeout' | 'variables'>,
): UpSettings {
  return {
    ...more,
    sources: files
      .filter(({ entries }) => entries.some((entry) => chosen.includes(entry)))
      .map(({ client, scope, profile, file, key }) => ({ client, scope, profile, file, key })),
    servers: chosen.map(({ source, name }) => ({ file: source.file, name })),
    skipped,
    targets,
  }
}

/**
 * Returns the values of the variables that the servers refer to. A process that starts at login does not have the
 * environment variables of a shell.
 */
export function knownVariables(
  entries: readonly ClientEntry[],
  lookup: ReferenceLookup,
): Readonly<Record<string, string>> {
  const values = entries.flatMap(referencesOf).flatMap((reference) => {
    const value = lookup(reference)
    return value === undefined ? [] : [[reference.name, value] as const]
  })
  return Object.fromEntries(values)
}
