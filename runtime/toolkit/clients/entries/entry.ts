/** A server from a client's file, in a form common to all clients. */
import type { FileScope, EntryTransport } from '../catalog/client-row.ts'
import type { ClientId } from '../catalog/clients.ts'
import { type Reference, referencesIn, type Value } from './value.ts'

export interface ClientEntry {
  readonly source: EntrySource
  /** The server's name in the client's file. */
  readonly name: string
  readonly enabled: boolean
  readonly target: EntryTarget
  /** Names of the enabled tools. All other tools are disabled. */
  readonly allow: readonly string[] | undefined
  readonly notes: readonly Note[]
}

export interface EntrySource {
  /** `plain` for an unknown client's file. */
  readonly client: ClientId | 'plain'
  readonly scope: FileScope | 'file'
  readonly file: string
  /** Folder to which a local entry applies, or the name of the profile. */
  readonly within?: string
}

export type EntryTarget = EntryProgram | EntryRemote | Unusable

export interface EntryProgram {
  readonly kind: 'program'
  readonly command: Value
  readonly args: readonly Value[]
  readonly env: ReadonlyMap<string, Value>
  /** True when the program serves HTTP, on the port that replaces `{port}` in its arguments, instead of stdio. */
  readonly http?: true
  /** Image and arguments, when the program is a container. */
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

/** An entry that cannot be run or called. `why` completes a sentence whose subject is the entry. */
export interface Unusable {
  readonly kind: 'unusable'
  readonly why: string
  /** There is nothing to convert, because the entry is a built-in server or Gatehouse itself. */
  readonly harmless?: true
}

/** A remark about a field. `loses` is true when the conversion changes the server's behavior. */
export interface Note {
  readonly field: string
  readonly text: string
  readonly loses: boolean
}

/** Returns every reference in an entry. */
export function referencesOf({ target }: ClientEntry): readonly Reference[] {
  if (target.kind === 'unusable') return []
  const values =
    target.kind === 'program'
      ? [target.command, ...target.args, ...target.env.values()]
      : [target.url, ...target.headers.values()]
  return values.flatMap(referencesIn)
}
