/**
 * `gatehouse import` converts the servers that MCP clients have configured to manifests. Does not start or download
 * anything, and does not change any client's file.
 */
import { invalidConfig, own } from '../../../schemas/index.ts'
import { resolve } from 'node:path'
import {
  type ClientEntry,
  type Conversion,
  type ConvertOptions,
  convertEntries,
  folderFiles,
  type Host,
  objectName,
  type Reference,
  referencesOf,
} from '../../toolkit/clients/index.ts'
import { exitCode, painter, print, printError, printJson } from '../../toolkit/terminal/output.ts'
import { promptSecret, canPrompt } from '../../toolkit/terminal/ask.ts'
import { clientNamed } from '../../toolkit/client-files/choose.ts'
import { thisHost } from '../../toolkit/client-files/host.ts'
import { reportLines, reportObject } from './report.ts'
import { type Saved, saveFolder } from '../../toolkit/client-files/save.ts'
import { readSources, type Source } from '../../toolkit/client-files/sources.ts'

export interface ImportOptions {
  readonly as?: string
  readonly save?: string
  readonly force: boolean
  readonly output: 'text' | 'json'
  readonly group: string
  readonly target: 'dev' | 'cluster'
  readonly oidcConfig?: string
  readonly audience?: string
  readonly secrets: 'manifest' | 'env'
  readonly plain: readonly string[]
  readonly image: readonly string[]
  readonly keepSecretArgs: boolean
  readonly resolveEnv: boolean
  readonly includeDisabled: boolean
}

/** Returns the exit code. */
export async function importServers(words: readonly string[], options: ImportOptions): Promise<number> {
  const host = thisHost()
  const convert = await convertOptions(options, host)
  const sources = await readSources(
    words,
    host,
    options.as === undefined ? undefined : clientNamed(options.as),
  )
  if (sources.length === 0) {
    printError('No MCP client files found. Run gatehouse import FILE, or see gatehouse client list --all')
    return exitCode.failed
  }
  const entries = sources.flatMap((source) => source.entries)
  const resolve = options.resolveEnv ? await resolver(entries, host) : () => undefined
  const conversion = convertEntries(entries, { ...convert, resolve })
  refuseUnmatched(options, conversion)
  const saved = options.save === undefined ? undefined : save(options.save, conversion, options.force)
  if (options.output === 'json') printJson(reportObject(sources, conversion, saved?.written ?? []))
  else show(sources, conversion, { host, saved, folder: options.save })
  return codeOf(sources, conversion)
}

async function convertOptions(options: ImportOptions, host: Host): Promise<ConvertOptions> {
  const { validateResource } = await import('../../../hooks/index.ts')
  const { group, target, oidcConfig, audience } = options
  if (group !== objectName(group))
    throw invalidConfig('--group: must be a name of lower-case letters, digits and "-"')
  if (target === 'cluster' && (oidcConfig === undefined || audience === undefined)) {
    throw invalidConfig(
      '--target cluster: requires --oidc-config NAME and --audience AUDIENCE, because servers in a cluster need a login',
    )
  }
  return {
    group,
    description: 'Servers imported from MCP clients',
    incoming:
      oidcConfig !== undefined && audience !== undefined
        ? { type: 'oidc', config: oidcConfig, audience }
        : { type: 'anonymous' },
    secrets: options.secrets,
    plain: new Set(options.plain),
    images: new Map(options.image.map(pairOf)),
    keepSecretArgs: options.keepSecretArgs,
    includeDisabled: options.includeDisabled,
    allowLoopback: false,
    prefixOne: true,
    resolve: () => undefined,
    home: host.home,
    violationsOf: (manifest) => validateResource(manifest).violations,
  }
}

/** Throws INVALID_CONFIG for an unknown server or variable, because its option would have no effect. */
function refuseUnmatched(options: ImportOptions, { entries }: Conversion): void {
  const servers = new Set(entries.flatMap(({ entry, object }) => [entry.name, object?.split('/')[1]]))
  const noServer = options.image.map((text) => pairOf(text)[0]).find((name) => !servers.has(name))
  if (noServer !== undefined) throw invalidConfig(`--image: there is no server ${noServer}`)
  const variables = new Set(
    entries.flatMap(({ entry: { target } }) => (target.kind === 'program' ? [...target.env.keys()] : [])),
  )
  const noVariable = options.plain.find((name) => !variables.has(name))
  if (noVariable !== undefined) throw invalidConfig(`--plain: no server has a variable ${noVariable}`)
}

function pairOf(text: string): readonly [string, string] {
  const [, name, image] = /^([^=]+)=(.+)$/.exec(text) ?? []
  if (name === undefined || image === undefined) throw invalidConfig('--image: must be NAME=IMAGE')
  return [name, image]
}

/** Returns a function that resolves variables from the environment, or prompts on the terminal, once per variable. */
async function resolver(
  entries: readonly ClientEntry[],
  { env }: Host,
): Promise<(reference: Reference) => string | undefined> {
  const typed = new Map<string, string>()
  const names = new Set(entries.flatMap(referencesOf).map(({ name }) => name))
  for (const name of canPrompt() ? names : []) {
    if (own(env, name)) continue
    const value = await promptSecret(`Value of ${name} (hidden; leave empty to keep the reference): `)
    if (value !== '') typed.set(name, value)
  }
  return ({ kind, name }) =>
    kind === 'env' || kind === 'input' ? own(env, name) || typed.get(name) : undefined
}

function save(folder: string, conversion: Conversion, force: boolean): Saved {
  if (conversion.members.length === 0)
    throw invalidConfig('--save: no server was converted, so there is nothing to write')
  return saveFolder(resolve(folder), folderFiles(conversion), { force })
}

interface Shown {
  readonly host: Host
  readonly saved: Saved | undefined
  readonly folder: string | undefined
}

function show(sources: readonly Source[], conversion: Conversion, { host, saved, folder }: Shown): void {
  const paint = painter({ colour: process.stdout.isTTY && process.stdout.hasColors() })
  for (const line of reportLines(sources, conversion, host, paint)) print(line)
  const { missing } = conversion.secrets
  const where = conversion.secrets.variables ? 'secrets.env' : 'secrets.yaml'
  for (const { name, key, variables } of missing) {
    print(
      `Fill in ${conversion.secrets.variables ? key : `${name}, ${key}`} in ${where}: the value of ${variables.join(', ')}`,
    )
  }
  if (missing.length > 0)
    print('Or use --resolve-env to read them from the environment or enter them on the terminal.')
  if (!saved || folder === undefined) {
    const count = conversion.members.length
    if (count > 0)
      print(
        `Nothing was written. To write ${count === 1 ? 'it' : 'them'}, run: gatehouse import … --save FOLDER`,
      )
    return
  }
  print(
    saved.written.length > 0
      ? `Written to ${folder}: ${saved.written.join(', ')}`
      : `${folder} is up to date`,
  )
  for (const name of saved.stale)
    printError(`${folder}/${name} is from an earlier run and is no longer used; it contains secrets`)
  print(`Next: gatehouse dev -f ${folder}   (check first: gatehouse validate -f ${folder})`)
}

function codeOf(sources: readonly Source[], { entries }: Conversion): number {
  if (sources.some(({ error }) => error !== undefined)) return exitCode.usage
  const isIncomplete = entries.some(({ outcome }) => outcome === 'partly' || outcome === 'not taken')
  return isIncomplete ? exitCode.failed : exitCode.ok
}
