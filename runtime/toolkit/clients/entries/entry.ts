/**
 * One server of a client, in the form that all clients share.
 */
import type { FileScope, EntryTransport } from '../catalog/client-row.ts'
import type { ClientId } from '../catalog/clients.ts'
import { type Reference, referencesIn, type Value } from './value.ts'

export interface ClientEntry {
  readonly source: EntrySource
  /** As the client has it. */
  readonly name: string
  readonly enabled: boolean
  readonly target: EntryTarget
  /** Only these tools are offered. */
  readonly allow: readonly string[] | undefined
  readonly notes: readonly Note[]
}

export interface EntrySource {
  /** `plain`: a file of no known client. */
  readonly client: ClientId | 'plain'
  readonly scope: FileScope | 'file'
  readonly file: string
  /** The folder of a local entry, or the profile. */
  readonly within?: string
}

export type EntryTarget = EntryProgram | EntryRemote | Unusable

export interface EntryProgram {
  readonly kind: 'program'
  readonly command: Value
  readonly args: readonly Value[]
  readonly env: ReadonlyMap<string, Value>
  /** It listens by itself, on the port that `{port}` stands for in its arguments, instead of speaking on its streams. */
  readonly http?: true
  /** The image and what it is started with, when the program is a container. */
  readonly container?: EntryContainer
}

export interface EntryContainer {
  readonly image: string
  readonly args: readonly Value[]
  readonly volumes: readonly { readonly host: string; readonly mount: string; readonly readOnly: boolean }[]
}

export interface EntryRemote {
  readonly kind: 'remote'
  readonly url: Value
  readonly transport: EntryTransport
  readonly headers: ReadonlyMap<string, Value>
}

/** Nothing that could be run or called; `why` is the end of a sentence about the entry. */
export interface Unusable {
  readonly kind: 'unusable'
  readonly why: string
  /** There is nothing to take: a built-in, or this gateway itself. */
  readonly harmless?: true
}

/** Something that is not taken over, and whether that changes what the server does. */
export interface Note {
  readonly field: string
  readonly text: string
  readonly loses: boolean
}

/** Every reference in an entry. */
export function referencesOf({ target }: ClientEntry): readonly Reference[] {
  if (target.kind === 'unusable') return []
  const values =
    target.kind === 'program'
      ? [target.command, ...target.args, ...target.env.values()]
      : [target.url, ...target.headers.values()]
  return values.flatMap(referencesIn)
}
