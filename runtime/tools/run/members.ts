/** Converts the arguments of `gatehouse run` to entries like those in a client's file. */
import { invalidConfig, own } from '../../../schemas/index.ts'
import {
  type ClientEntry,
  type Host,
  isClientId,
  packageName,
  type EntryProgram,
  type Value,
} from '../../toolkit/clients/index.ts'
import { readSources } from '../../toolkit/client-files/sources.ts'
import { splitCommand } from '../../toolkit/local/command-line.ts'

export interface MemberOptions {
  readonly name?: string
  readonly env: readonly string[]
  readonly url: readonly string[]
  readonly header: readonly string[]
  readonly server: readonly string[]
  readonly from: readonly string[]
  readonly envFile: readonly string[]
  readonly http: boolean
}

/**
 * Returns the servers to run. `values` contains the variables that options refer to. Throws INVALID_CONFIG when there
 * is no server or an option is invalid.
 */
export async function membersOf(
  words: readonly string[],
  options: MemberOptions,
  host: Host,
  values: Pick<Host, 'env'>,
): Promise<readonly ClientEntry[]> {
  const [first = ''] = words
  const isUrl = words.length === 1 && /^https?:\/\//i.test(first)
  const env = new Map(options.env.map((text) => variableOf(text, values)))
  const headers = new Map(options.header.map((text) => headerOf(text, values)))
  const programs = [
    ...(words.length > 0 && !isUrl ? [program(options.name, words, env, options.http)] : []),
    ...options.server.map((text) => {
      const [name, line] = pairOf('--server', text, 'NAME=COMMAND')
      const split = splitCommand(line)
      if (typeof split === 'string') throw invalidConfig(`--server ${name}: ${split}`)
      return program(name, split, env, options.http)
    }),
  ]
  const urls = isUrl ? [first, ...options.url] : options.url
  const isAlone = urls.length === 1 && programs.length === 0
  const members = [
    ...programs,
    ...urls.map((text) => remote(text, isAlone ? options.name : undefined, headers)),
    ...(await Promise.all(options.from.map((word) => entriesFrom(word, host)))).flat(),
  ]
  refuseUnused(options, { programs: programs.length, urls: urls.length, isAlone })
  if (members.length === 0) {
    throw invalidConfig(
      'nothing to run: add a command after --, --url URL, --server NAME=COMMAND or --from CLIENT',
    )
  }
  return members
}

/** Throws INVALID_CONFIG for an option that applies to no server. */
function refuseUnused(
  { env, header, http, name }: MemberOptions,
  { programs, urls, isAlone }: { programs: number; urls: number; isAlone: boolean },
): void {
  const none = 'requires a command; '
  if (programs === 0 && env.length > 0)
    throw invalidConfig(`-e: ${none}add one after --, or --server NAME=COMMAND`)
  if (programs === 0 && http) throw invalidConfig(`--http: ${none}add one after --, or --server NAME=COMMAND`)
  if (urls === 0 && header.length > 0)
    throw invalidConfig('--header: requires a server with a URL; add --url URL')
  if (name !== undefined && programs === 0 && !isAlone) {
    throw invalidConfig('--name: applies only to a single command or URL; name a URL with NAME=URL')
  }
}

function entry(name: string, target: ClientEntry['target']): ClientEntry {
  const source = { client: 'plain', scope: 'file', file: 'the command line' } as const
  return { source, name, enabled: true, target, allow: undefined, notes: [] }
}

function program(
  name: string | undefined,
  words: readonly string[],
  env: ReadonlyMap<string, Value>,
  http: boolean,
): ClientEntry {
  const [command = [''], ...args] = words.map((word): Value => [word])
  const target: EntryProgram = { kind: 'program', command, args, env, ...(http && { http }) }
  return entry(name ?? packageName(target), target)
}

function remote(
  text: string,
  defaultName: string | undefined,
  headers: ReadonlyMap<string, Value>,
): ClientEntry {
  const [, named, url = ''] = /^(?:([A-Za-z0-9][\w.-]*)=)?(.*)$/s.exec(text) ?? []
  if (!/^https?:\/\//i.test(url) || !URL.canParse(url)) {
    throw invalidConfig('--url: must be an http or https URL, or NAME=URL')
  }
  const { hostname, port, pathname } = new URL(url)
  const transport = pathname.endsWith('/sse') ? 'sse' : 'streamable-http'
  const name = named ?? defaultName ?? [nameOfHost(hostname), port].filter(Boolean).join('-')
  return entry(name, { kind: 'remote', url: [url], transport, headers })
}

/** Derives a name from a host: `mcp.example.com` becomes `example`. */
function nameOfHost(hostname: string): string {
  if (!/[a-z]/i.test(hostname.replace(/^\[.*\]$/, ''))) return 'server'
  const labels = hostname.replace(/^(?:mcp|api|www)\./, '').split('.')
  return labels.length > 1 ? labels.slice(0, -1).join('-') : hostname
}

async function entriesFrom(word: string, host: Host): Promise<readonly ClientEntry[]> {
  return (await readSources([word], host, undefined)).flatMap(({ file, error, entries }) => {
    if (error !== undefined) throw invalidConfig(`--from ${isClientId(word) ? word : file}: ${error}`)
    return entries
  })
}

/** Parses `K=V`, or `K` alone, whose value comes from the environment. */
function variableOf(text: string, { env }: Pick<Host, 'env'>): [string, Value] {
  const at = text.indexOf('=')
  if (at > 0) return [text.slice(0, at), [text.slice(at + 1)]]
  const value = own(env, text)
  if (value === undefined)
    throw invalidConfig(`-e ${text}: the variable is not set; set it, or write ${text}=VALUE`)
  return [text, [value]]
}

/**
 * Parses `NAME=VARIABLE`. The value must come from a variable, because every program on this machine can read command
 * lines.
 */
function headerOf(text: string, { env }: Pick<Host, 'env'>): [string, Value] {
  const [name, variable] = pairOf('--header', text, 'NAME=VARIABLE, where VARIABLE contains the value')
  const value = own(env, variable)
  if (value === undefined) throw invalidConfig(`--header ${name}: the variable is not set`)
  return [name, [value]]
}

function pairOf(flag: string, text: string, form: string): [string, string] {
  const at = text.indexOf('=')
  if (at < 1 || at === text.length - 1) throw invalidConfig(`${flag}: must be ${form}`)
  return [text.slice(0, at), text.slice(at + 1)]
}
