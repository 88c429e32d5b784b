/**
 * Checks an MCP client's file: its syntax, whether each entry can work, and the servers behind the entries. A token in
 * an entry's header is sent only to that entry's URL, as the client itself does.
 */
import { own, invalidConfig } from '../../../../schemas/index.ts'
import {
  type ClientEntry,
  type Host,
  referencesOf,
  printableName,
  type Value,
} from '../../../toolkit/clients/index.ts'
import { canStart } from '../../../config/index.ts'
import { shortPath, thisHost } from '../../../toolkit/client-files/host.ts'
import { readSources, type Source } from '../../../toolkit/client-files/sources.ts'
import { type CommonOptions, remoteTarget } from './remote.ts'
import type { Examined } from './report.ts'
import { type Check, walk } from '../report/walk.ts'
import { failed, ok, type CheckOutcome, skipped, warning } from '../report/finding.ts'
import { makeClean } from '../report/text.ts'
import { quantity } from '../../../toolkit/terminal/plain-text.ts'

/**
 * `named` selects a single entry. Throws INVALID_CONFIG when no file contains that entry, or when a token is set
 * without an entry. A token is sent only to a server that the user selected.
 */
export async function* clientTargets(
  word: string,
  named: string | undefined,
  common: CommonOptions,
): AsyncGenerator<Examined> {
  if (named === undefined && common.token !== undefined)
    throw invalidConfig('--token-file: with --client, select the entry for the token with --entry NAME')
  const host = thisHost()
  const sources = (await readSources([word], host, undefined)).map((source) => onlyNamed(source, named))
  if (
    named !== undefined &&
    sources.every(({ error, entries }) => error === undefined && entries.length === 0)
  )
    throw invalidConfig(`--entry: ${word} has no entry ${printableName(named)}`)
  if (common.token !== undefined) refuseSeveral(sources, printableName(named ?? ''), host)
  for (const source of sources) {
    const findings = await walk(checksOf(source, host), { facts: undefined, clean: makeClean([]) })
    yield { target: shortPath(source.file, host), findings }
    for (const entry of source.entries) yield* remoteOf(entry, host, common)
  }
}

/** Rejects an entry name that occurs in several files, because these entries may refer to different servers. */
function refuseSeveral(sources: readonly Source[], named: string, host: Host): void {
  const files = sources
    .filter(({ entries }) => entries.some(({ enabled, target }) => enabled && target.kind === 'remote'))
    .map(({ file }) => shortPath(file, host))
  if (files.length > 1)
    throw invalidConfig(
      `--token-file: ${named} occurs in several files, but only one server can receive the token: use --client FILE with one of ${files.join(', ')}`,
    )
  if (files.length === 0) throw invalidConfig(`--token-file: ${named} is not an enabled entry with a URL`)
}

function onlyNamed(source: Source, named: string | undefined): Source {
  if (named === undefined) return source
  return { ...source, entries: source.entries.filter(({ name }) => name === named) }
}

function checksOf(source: Source, host: Host): readonly Check<undefined>[] {
  const row = (id: string, run: () => CheckOutcome): Check<undefined> => ({
    id,
    hop: 'client file',
    needs: [],
    object: () => shortPath(source.file, host),
    run: async () => run(),
  })
  return [
    row('file', () =>
      source.error === undefined
        ? ok(quantity(source.entries.length, 'server'))
        : failed('client-file.unreadable', source.error),
    ),
    ...source.entries.map((entry) => row(entry.name, () => entryOutcome(entry, host))),
  ]
}

function entryOutcome(entry: ClientEntry, host: Host): CheckOutcome {
  const { target, enabled } = entry
  if (!enabled) return warning('client-file.disabled', `${entry.name} is disabled`)
  if (target.kind === 'unusable') {
    if (target.harmless === true) return skipped(`${entry.name} ${target.why}`)
    return failed('client-file.entry', `${entry.name} ${target.why}`)
  }
  const unset = referencesOf(entry).filter(
    ({ kind, name, fallback }) =>
      kind === 'env' && fallback === undefined && own(host.env, name) === undefined,
  )
  if (unset.length > 0) {
    const names = unset.map(({ name }) => name).join(', ')
    return warning('client-file.variable', `${entry.name}: not set in this environment: ${names}`)
  }
  if (target.kind === 'remote') return ok(`${entry.name} is a URL`)
  const command = resolveValue(target.command, host)
  if (command === undefined) return skipped(`${entry.name}: only the client can resolve its program`)
  return canStart(command, host)
    ? ok(`${entry.name}: ${command}`)
    : failed('client-file.program', `${entry.name}: program ${command} not found`)
}

/** Resolves variables from the environment. Undefined when part of the entry can be resolved only by the client. */
function resolveValue(value: Value, { env, home }: Host): string | undefined {
  const parts = value.map((part) => {
    if (typeof part === 'string') return part
    if (part.kind === 'home') return home
    return part.kind === 'env' ? (own(env, part.name) ?? part.fallback) : undefined
  })
  return parts.includes(undefined) ? undefined : parts.join('')
}

async function* remoteOf(
  { target, enabled }: ClientEntry,
  host: Host,
  common: CommonOptions,
): AsyncGenerator<Examined> {
  if (!enabled || target.kind !== 'remote') return
  const url = resolveValue(target.url, host)
  if (url === undefined || !URL.canParse(url) || !/^https?:/.test(url)) return
  const [, header] = [...target.headers].find(([name]) => name.toLowerCase() === 'authorization') ?? []
  const credential = header === undefined ? undefined : resolveValue(header, host)
  const token = common.token ?? /^Bearer ([\x21-\x7e]+)$/i.exec(credential ?? '')?.[1]
  if (token !== undefined) yield await remoteTarget(url, { ...common, token })
  // If another header contains a key, there is no OAuth login to check.
  else yield await remoteTarget(url, target.headers.size > 0 ? { ...common, depth: 'backend' } : common)
}
