/** Reads servers for `import` and `run --from` from client files, named files, and standard input. */
import { invalidConfig } from '../../../schemas/index.ts'
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import {
  type ClientEntry,
  type ClientId,
  clientIds,
  clientRow,
  decodeText,
  type Host,
  isClientId,
  locationsOf,
  maxFileBytes,
  readEntries,
} from '../clients/index.ts'
import { existingLocations } from './choose.ts'
import { claimStandardInput } from '../terminal/input.ts'
import { unknownClient } from './choose.ts'
import { readFileOnDisk } from './file.ts'
import { shortPath } from './host.ts'

/** A file with its entries, or the error that occurred while reading the file. */
export interface Source {
  readonly client: ClientId | 'plain' | undefined
  readonly file: string
  readonly entries: readonly ClientEntry[]
  readonly error: string | undefined
}

/**
 * Returns the files in a command's arguments, or all clients' files if there are no arguments. Throws INVALID_CONFIG
 * for an argument that is neither a client nor a file.
 */
export async function readSources(
  words: readonly string[],
  host: Host,
  as: ClientId | undefined,
): Promise<readonly Source[]> {
  if (words.length === 0) return clientIds.flatMap((client) => sourcesOfClient(client, host))
  const input = words.includes('-') ? await (piped ??= boundedInput()) : undefined
  return words.flatMap((word) => {
    if (word === '-') return [readText('standard input', as, () => input ?? Buffer.alloc(0))]
    if (isClientId(word) && as === undefined) return sourcesNamed(word, host)
    const file = resolve(host.cwd, word)
    if (existsSync(file)) return [readText(file, as, () => readFileOnDisk(file).bytes ?? Buffer.alloc(0))]
    const isPath = /[/\\.]/.test(word)
    throw invalidConfig(isPath ? `${word}: no such file` : unknownClient(word, 'client or file'))
  })
}

let piped: Promise<Buffer> | undefined

/** Reads at most slightly more than the size limit. Larger input is rejected later. */
async function boundedInput(): Promise<Buffer> {
  claimStandardInput('the client configuration')
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of process.stdin as AsyncIterable<Buffer>) {
    chunks.push(chunk)
    length += chunk.length
    if (length > maxFileBytes) break
  }
  return Buffer.concat(chunks)
}

function sourcesNamed(client: ClientId, host: Host): readonly Source[] {
  const found = sourcesOfClient(client, host)
  if (found.length > 0) return found
  const paths = [...new Set(locationsOf(client, host).map(({ file }) => shortPath(file, host)))]
  throw invalidConfig(
    `${client}: ${clientRow(client).title} has no configuration file; searched ${paths.join(', ')}`,
  )
}

function sourcesOfClient(client: ClientId, host: Host): readonly Source[] {
  return existingLocations(client, host).map(({ file, scope, profile }) =>
    readText(file, client, () => readFileOnDisk(file).bytes ?? Buffer.alloc(0), { scope, profile }),
  )
}

type SourceScope = Pick<Parameters<typeof readEntries>[0], 'scope' | 'profile'>

function readText(
  file: string,
  client: ClientId | undefined,
  read: () => Uint8Array,
  scope: SourceScope = {},
): Source {
  try {
    const { text } = decodeText(read(), file)
    const { client: found, entries } = readEntries({ file, text, client, ...scope })
    return { client: found, file, entries, error: undefined }
  } catch (error) {
    return { client, file, entries: [], error: error instanceof Error ? error.message : String(error) }
  }
}
