/**
 * Which of a client's files a command works on.
 */
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

export interface WantedLocation {
  readonly scope: FileScope
  readonly profile?: string | undefined
}

/** Throws INVALID_CONFIG naming what was meant. */
export function clientNamed(name: string): ClientId {
  if (isClientId(name)) return name
  throw invalidConfig(unknownClient(name, 'client'))
}

/** That there is no such client, which one may be meant, and which there are. */
export function unknownClient(name: string, wanted: string): string {
  const close = nearest(name, clientIds)
  const meant = close === undefined ? '.' : `; did you mean ${close}?`
  return `${name}: no such ${wanted}${meant} Known: ${clientIds.join(', ')}`
}

/** The file of a scope: the first that exists, else the first that the client would make. */
export function locationFor(client: ClientId, { scope, profile }: WantedLocation, host: Host): Location {
  const { title } = clientRow(client)
  const wanted = profile === undefined ? scope : 'profile'
  const all = locationsOf(client, host).filter((each) => each.scope === wanted)
  const places = profile === undefined ? all : all.filter((each) => each.profile === profile)
  const found = places.find(({ file }) => existsSync(file)) ?? places.find(({ row }) => !row.ifPresent)
  if (found) return found
  if (profile !== undefined) {
    const known = all.map((each) => each.profile).join(', ')
    throw invalidConfig(
      `--profile: ${title} has no profile ${profile} here${known ? `; it has ${known}` : ''}`,
    )
  }
  const scopes = [...new Set(locationsOf(client, host).map((each) => each.scope))]
  throw invalidConfig(
    `--scope: ${title} has no ${scope} file on this system${scopes.length > 0 ? `; it has ${scopes.join(', ')}` : ''}`,
  )
}

/** All files of a client that exist, each once. */
export function existingLocations(client: ClientId, host: Host): readonly Location[] {
  const seen = new Set<string>()
  return locationsOf(client, host).filter(({ file }) => {
    if (seen.has(file) || !existsSync(file)) return false
    seen.add(file)
    return true
  })
}
