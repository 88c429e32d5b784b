/** Selects the client file that a command works on. */
import { existsSync } from 'node:fs'
import { nearest, invalidConfig } from '../../../schemas/index.ts'
import {
  type ClientId,
  clientIds,
  clientRow,
  type Host,
  isClientId,
  type Location,
  locationsOf,
  type FileScope,
} from '../clients/index.ts'

export interface LocationChoice {
  readonly scope: FileScope
  readonly profile?: string | undefined
}

/** Throws INVALID_CONFIG with a suggestion for an unknown name. */
export function clientNamed(name: string): ClientId {
  if (isClientId(name)) return name
  throw invalidConfig(unknownClient(name, 'client'))
}

/** Returns an error message with the closest match and all known clients. */
export function unknownClient(name: string, expected: string): string {
  const close = nearest(name, clientIds)
  const meant = close === undefined ? '.' : `; did you mean ${close}?`
  return `${name}: no such ${expected}${meant} Known clients: ${clientIds.join(', ')}`
}

/** Returns the file for a scope: the first existing file, or the first file that the client would create. */
export function locationFor(client: ClientId, { scope, profile }: LocationChoice, host: Host): Location {
  const { title } = clientRow(client)
  const chosenScope = profile === undefined ? scope : 'profile'
  const all = locationsOf(client, host).filter((location) => location.scope === chosenScope)
  const candidates = profile === undefined ? all : all.filter((location) => location.profile === profile)
  const found =
    candidates.find(({ file }) => existsSync(file)) ?? candidates.find(({ row }) => !row.ifPresent)
  if (found) return found
  if (profile !== undefined) {
    const known = all.map((location) => location.profile).join(', ')
    throw invalidConfig(
      `--profile: ${title} has no profile ${profile}${known ? `; available: ${known}` : ''}`,
    )
  }
  const scopes = [...new Set(locationsOf(client, host).map((location) => location.scope))]
  throw invalidConfig(
    `--scope: ${title} has no ${scope} file on this system${scopes.length > 0 ? `; available: ${scopes.join(', ')}` : ''}`,
  )
}

/** Returns all existing files of a client, without duplicates. */
export function existingLocations(client: ClientId, host: Host): readonly Location[] {
  const seen = new Set<string>()
  return locationsOf(client, host).filter(({ file }) => {
    if (seen.has(file) || !existsSync(file)) return false
    seen.add(file)
    return true
  })
}
