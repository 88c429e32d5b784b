/** The manual alternative to an edit: the entry in the client's format, the client's command, and a link. */
import { writeYaml } from '../../../../schemas/yaml/index.ts'
import { stringify as stringifyToml } from 'smol-toml'
import type { FileScope } from '../catalog/client-row.ts'
import { clientRow } from '../catalog/clients.ts'
import { type ClientConnection, connectionEntry } from './entry.ts'

export interface Snippet {
  /** The entry within its server map. */
  readonly text: string
  /**
   * The client's command. Undefined when the client has no such command, or when the command cannot express the whole
   * entry.
   */
  readonly command: string | undefined
  /** A link never contains a secret or a reference to a secret. */
  readonly link: string | undefined
}

export function snippetOf(connection: ClientConnection, key: readonly string[], scope: FileScope): Snippet {
  const { client, name, url, program, bearerVariable } = connection
  const row = clientRow(client)
  const entry = connectionEntry(connection)
  const nested = [...key, name].reduceRight<unknown>((held, part) => ({ [part]: held }), entry)
  const isPlain = program === undefined && bearerVariable === undefined
  const text = {
    json: () => `${JSON.stringify(nested, undefined, 2)}\n`,
    toml: () => `${stringifyToml(nested).trim()}\n`,
    yaml: () => writeYaml(nested),
  }[row.format]()
  return {
    text,
    command: isPlain ? row.ownCommand?.(name, url, scope).map(shellWord).join(' ') : undefined,
    link: isPlain ? row.link?.(name, url) : undefined,
  }
}

function shellWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`
}
