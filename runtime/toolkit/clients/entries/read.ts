/**
 * Reads all servers in a client's file.
 *
 * Detects the client from the path, then from the contents. An unknown client's file is searched for `mcpServers`.
 */
import { isFields } from '../../../../schemas/index.ts'
import type { EntryForm, FileScope } from '../catalog/client-row.ts'
import { type ClientId, clientIds, clientRow, plainForm, plainKeys } from '../catalog/clients.ts'
import { type Format, parseDocument } from '../document/document.ts'
import { refusedFile } from '../document/text.ts'
import { entryAt } from '../edit/edit.ts'
import type { ClientEntry, EntrySource } from './entry.ts'
import { normaliseEntry } from './normalise.ts'
import { unwrapEntry } from './unwrap.ts'
import type { ReadSyntax } from './value.ts'

export interface ClientFile {
  /** The path, used in messages and to detect the client. */
  readonly file: string
  readonly text: string
  /** Client whose format the entries use. If undefined, the client is detected. */
  readonly client?: ClientId | 'plain' | undefined
  /** The file's scope in the client. Undefined when the user specified the file. */
  readonly scope?: FileScope | 'file' | undefined
  readonly profile?: string | undefined
}

export interface ReadEntries {
  readonly client: ClientId | 'plain'
  readonly entries: readonly ClientEntry[]
}

/** Throws INVALID_CONFIG when the text cannot be parsed or contains no server map. */
export function readEntries({ file, text, client: given, scope = 'file', profile }: ClientFile): ReadEntries {
  const format = formatOf(file, text, given)
  const document = parseDocument(format, text, file)
  const client = given ?? clientOfPath(file) ?? clientOfContents(document, format)
  const source: EntrySource = { client, scope, file, ...(profile !== undefined && { within: profile }) }
  const maps = mapsIn(document, source)
  const excluded = excludedNames(document, client)
  const entries = maps.flatMap(({ map, source }) =>
    Object.entries(map).map(([name, raw]) =>
      unwrapEntry(normaliseEntry(name, raw, { source, ...formOf(client), excluded: excluded.has(name) })),
    ),
  )
  return { client, entries }
}

function formOf(client: ClientId | 'plain'): { form: EntryForm; variables: ReadSyntax } {
  return client === 'plain' ? { form: plainForm, variables: 'any' } : clientRow(client)
}

function formatOf(file: string, text: string, client: ClientId | 'plain' | undefined): Format {
  if (/\.toml$/i.test(file)) return 'toml'
  if (/\.ya?ml$/i.test(file)) return 'yaml'
  if (/\.jsonc?$/i.test(file)) return 'json'
  if (client && client !== 'plain') return clientRow(client).format
  const first = firstLine(text) ?? '{'
  if (/^[{/]/.test(first)) return 'json'
  return /^\[[\w."'-]|^[\w."'-]+\s*=/.test(first) ? 'toml' : 'yaml'
}

/** Returns the first line that is neither blank nor a comment. */
function firstLine(text: string): string | undefined {
  for (let at = 0; at < text.length; ) {
    const end = text.indexOf('\n', at)
    const line = text.slice(at, end < 0 ? text.length : end).trim()
    if (line !== '' && !/^(?:#|\/\/)/.test(line)) return line
    if (end < 0) break
    at = end + 1
  }
  return undefined
}

/** Returns the client whose file path is the longest match for the end of the path. */
export function clientOfPath(file: string): ClientId | undefined {
  const path = file.replaceAll('\\', '/')
  const found = clientIds.flatMap((id) =>
    clientRow(id)
      .files.flatMap((row) => tailsOf(row.path))
      .filter((tail) => path === tail || path.endsWith(`/${tail}`))
      .map((tail) => ({ id, length: tail.length })),
  )
  return found.toSorted((a, b) => b.length - a.length)[0]?.id
}

/** Returns the machine-independent end of a path template, and its bare file name. */
function tailsOf(template: string): readonly string[] {
  const tail = template.replace(/^.*[}*]\//, '')
  return [tail, tail.replace(/^.*\//, '')].filter((tail) => !sharedFileNames.has(tail))
}

/** File names that several programs use. */
const sharedFileNames: ReadonlySet<string> = new Set([
  'mcp.json',
  'settings.json',
  'config.toml',
  'config.yaml',
])

function clientOfContents(document: Readonly<Record<string, unknown>>, format: Format): ClientId | 'plain' {
  if (format === 'toml') return 'codex'
  if (isFields(document['extensions']) && format === 'yaml') return 'goose'
  if (isFields(document['context_servers'])) return 'zed'
  if (isFields(document['servers']) && !isFields(document['mcpServers'])) return 'vscode'
  if (isFields(document['mcp']) && !isFields(document['mcpServers'])) return 'opencode'
  return 'plain'
}

interface ServerMap {
  readonly map: Readonly<Record<string, unknown>>
  readonly source: EntrySource
}

function mapsIn(document: Readonly<Record<string, unknown>>, source: EntrySource): readonly ServerMap[] {
  const { client, file } = source
  const maps: ServerMap[] = []
  for (const key of serverMapKeys(client, document)) {
    const map = entryAt(document, key)
    if (map === undefined || map === null) continue
    if (!isFields(map))
      throw refusedFile(`${file}:`, `"${key.join('.')}" must be an object with one member per server`)
    maps.push({ map, source })
  }
  if (client === 'claude-code') maps.push(...projectMaps(document, source))
  if (maps.length === 0 && client === 'plain') {
    throw refusedFile(
      file,
      'contains no MCP servers: "mcpServers" is missing, and the file does not belong to a known client',
    )
  }
  return maps
}

/** Returns the keys under which the client stores its servers. */
export function serverMapKeys(client: ClientId | 'plain', document: unknown): readonly (readonly string[])[] {
  if (client === 'plain') return plainKeys
  // Version 2 of this client's file nests the map one level deeper.
  if (client === 'opencode' && isFields(entryAt(document, ['mcp', 'servers']))) return [['mcp', 'servers']]
  const { key, files } = clientRow(client)
  const special = files.flatMap((row) => (row.key && row.scope !== 'local' ? [row.key] : []))
  return [key, ...special]
}

/** Returns the servers of individual projects, which are listed in the user's file. */
function projectMaps(document: Readonly<Record<string, unknown>>, source: EntrySource): readonly ServerMap[] {
  const projects = document['projects']
  if (!isFields(projects)) return []
  return Object.entries(projects).flatMap(([folder, project]) => {
    const map = isFields(project) ? project['mcpServers'] : undefined
    return isFields(map) ? [{ map, source: { ...source, scope: 'local' as const, within: folder } }] : []
  })
}

function excludedNames(document: unknown, client: ClientId | 'plain'): ReadonlySet<unknown> {
  const names = client === 'gemini' ? entryAt(document, ['mcp', 'excluded']) : undefined
  return new Set(Array.isArray(names) ? names : [])
}
