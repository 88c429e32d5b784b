/**
 * The file of an MCP client: can it be parsed, can each entry work, and is what it leads to in order. The header of an entry
 * that holds a token is used for that entry's own URL, as the client would.
 */
import { own, invalidConfig } from '../../../../schemas/index.ts'
import {
  type ClientEntry,
  type Host,
  referencesOf,
  shown,
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

/**
 * `named`: the one entry that is examined. Throws INVALID_CONFIG when no file has it, or a token is given and no entry named:
 * a token goes where the user says, not to whatever a file lists.
 */
export async function* clientTargets(
  word: string,
  named: string | undefined,
  common: CommonOptions,
): AsyncGenerator<Examined> {
  if (named === undefined && common.token !== undefined)
    throw invalidConfig('--token-file: with --client, name the entry that gets the token: --entry NAME')
  const host = thisHost()
  const sources = (await readSources([word], host, undefined)).map((source) => onlyNamed(source, named))
  if (
    named !== undefined &&
    sources.every(({ error, entries }) => error === undefined && entries.length === 0)
  )
    throw invalidConfig(`--entry: ${word} has no entry ${shown(named)}`)
  if (common.token !== undefined) refuseSeveral(sources, shown(named ?? ''), host)
  for (const source of sources) {
    const findings = await walk(checksOf(source, host), { facts: undefined, clean: makeClean([]) })
    yield { target: shortPath(source.file, host), findings }
    for (const entry of source.entries) yield* remoteOf(entry, host, common)
  }
}

/** Entries of one name in several files lead to different servers. */
function refuseSeveral(sources: readonly Source[], named: string, host: Host): void {
  const files = sources
    .filter(({ entries }) => entries.some(({ enabled, target }) => enabled && target.kind === 'remote'))
    .map(({ file }) => shortPath(file, host))
  if (files.length > 1)
    throw invalidConfig(
      `--token-file: ${named} stands in several files, and only one may get the token: say --client FILE with one of ${files.join(', ')}`,
    )
  if (files.length === 0) throw invalidConfig(`--token-file: ${named} is no enabled entry with a URL`)
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
        ? ok(`${source.entries.length} servers`)
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
    return warning('client-file.variable', `${entry.name}: not set here: ${names}`)
  }
  if (target.kind === 'remote') return ok(`${entry.name} is a URL`)
  const command = filled(target.command, host)
  if (command === undefined) return skipped(`${entry.name}: only the client knows its program`)
  return canStart(command, host)
    ? ok(`${entry.name}: ${command}`)
    : failed('client-file.program', `${entry.name}: no program ${command}`)
}

/** With variables of the environment in place; undefined when the client alone knows a part. */
function filled(value: Value, { env, home }: Host): string | undefined {
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
  const url = filled(target.url, host)
  if (url === undefined || !URL.canParse(url) || !/^https?:/.test(url)) return
  const [, header] = [...target.headers].find(([name]) => name.toLowerCase() === 'authorization') ?? []
  const credential = header === undefined ? undefined : filled(header, host)
  const token = common.token ?? /^Bearer ([\x21-\x7e]+)$/i.exec(credential ?? '')?.[1]
  if (token !== undefined) yield await remoteTarget(url, { ...common, token })
  // With a key in another header there is no login to examine.
  else yield await remoteTarget(url, target.headers.size > 0 ? { ...common, depth: 'backend' } : common)
}
