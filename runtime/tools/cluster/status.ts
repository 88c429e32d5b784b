/**
 * `gatehouse cluster status` prints one line per object. The command reads lists in pages and keeps only the rows of
 * the current page. The first pages of all kinds are printed together, so that columns have their final width from the
 * start.
 */
import { once } from 'node:events'
import { environment } from '../../config/index.ts'
import {
  type Fields,
  invalidConfig,
  isColoured,
  type Kind,
  kindOf,
  kinds,
  visibleJson,
} from '../../../schemas/index.ts'
import { exitCode, painter, printError } from '../../toolkit/terminal/output.ts'
import { quantity } from '../../toolkit/terminal/plain-text.ts'
import {
  type ClusterView,
  type ClusterFlags,
  kindPath,
  type NamedObject,
  openCluster,
  parseNamed,
  type Unread,
} from './reader.ts'
import { type ObjectState, stateOf } from './state.ts'
import { ageText, Table } from './table.ts'
import { textAt } from '../../toolkit/cluster/objects.ts'

export interface StatusFlags extends ClusterFlags {
  readonly allNamespaces: boolean
  readonly output: 'text' | 'json'
}

interface Row extends ObjectState {
  readonly namespace: string
  readonly kind: string
  readonly name: string
  readonly created: string
}

interface Counts {
  objects: number
  ready: number
  notReady: number
  unknown: number
  rollingOut: number
  stalled: number
}

/** Returns exit code 0 when everything is ready and no rollout is stalled. */
export async function clusterStatus(words: readonly string[], flags: StatusFlags): Promise<number> {
  const wanted = words.map(parseSelector)
  if (flags.allNamespaces && flags.namespace !== undefined)
    throw invalidConfig('--all-namespaces and --namespace cannot be combined')
  if (flags.allNamespaces && wanted.some(({ name }) => name !== ''))
    throw invalidConfig(
      '--all-namespaces: a single object is in one namespace; use only its kind, or --namespace',
    )
  const cluster = await openCluster(flags)
  const counts: Counts = { objects: 0, ready: 0, notReady: 0, unknown: 0, rollingOut: 0, stalled: 0 }
  const writer = flags.output === 'json' ? jsonWriter() : textWriter(flags.allNamespaces)
  const unread: string[] = []
  for await (const rows of rowsOf(cluster, wanted, flags, unread)) {
    for (const row of rows) count(counts, row)
    await writer.rows(rows)
  }
  if (
    wanted.length === 0 &&
    unread.length === kinds.length &&
    unread.every((text) => text.endsWith('is not installed'))
  )
    throw invalidConfig(
      'the gatehouse.dev kinds are not installed in the cluster: run "gatehouse doctor --cluster"',
    )
  await writer.end(counts, unread, flags.allNamespaces ? undefined : cluster.namespace)
  return counts.notReady + counts.unknown + counts.stalled + unread.length === 0
    ? exitCode.ok
    : exitCode.failed
}

/** Parses `KIND` or `KIND/NAME`. */
function parseSelector(word: string): { readonly kind: Kind; readonly name: string } {
  const kind = word.includes('/') ? undefined : kindOf(word)
  return kind ? { kind, name: '' } : parseNamed(word)
}

/** Yields pages of rows. Adds messages about unreadable objects to `unread`. */
async function* rowsOf(
  cluster: ClusterView,
  wanted: readonly NamedObject[],
  { allNamespaces }: StatusFlags,
  unread: string[],
): AsyncGenerator<readonly Row[]> {
  const namespace = allNamespaces ? undefined : cluster.namespace
  const all = wanted.length > 0 ? wanted : kinds.map((kind) => ({ kind, name: '' }))
  const sources = all.map(({ kind, name }) => ({
    kind,
    name,
    pages: name === '' ? cluster.pages(kindPath(kind, namespace)) : single(cluster, kind, name),
  }))
  const readPage = async ({
    kind,
    name,
    pages,
  }: (typeof sources)[number]): Promise<readonly Row[] | undefined> => {
    const next = await pages.next()
    if (next.done === true) return undefined
    const { value } = next
    if (typeof value !== 'string') return value.map((object) => rowOf(kind, object))
    unread.push(unreadText(value, kind, name, namespace))
    return undefined
  }
  const first = await Promise.all(sources.map(readPage))
  // Yield a single page when there are few objects.
  yield first.flatMap((rows) => rows ?? [])
  for (const [index, source] of sources.entries()) {
    let rows = first[index] && (await readPage(source))
    while (rows) {
      yield rows
      rows = await readPage(source)
    }
  }
}

async function* single(
  cluster: ClusterView,
  kind: Kind,
  name: string,
): AsyncGenerator<readonly Fields[] | Unread> {
  const found = await cluster.read(kindPath(kind, cluster.namespace, name))
  yield typeof found === 'string' ? found : [found]
}

function unreadText(failure: Unread, kind: Kind, name: string, namespace: string | undefined): string {
  const where = namespace === undefined ? 'in all namespaces' : `in namespace ${namespace}`
  if (failure === 'forbidden')
    return `no permission to ${name === '' ? 'list' : 'get'} ${kind.plural} ${where}`
  return name === '' ? `${kind.plural} is not installed` : `there is no ${kind.kind} ${name} ${where}`
}

function rowOf(kind: Kind, object: Fields): Row {
  const state = stateOf(object)
  return {
    namespace: textAt(object, 'metadata', 'namespace') ?? '',
    kind: kind.kind,
    name: textAt(object, 'metadata', 'name') ?? '',
    created: textAt(object, 'metadata', 'creationTimestamp') ?? '',
    ...state,
    message: state.message.slice(0, 1_024),
  }
}

function count(counts: Counts, { ready, rollout }: Row): void {
  counts.objects++
  if (ready === 'True') counts.ready++
  else if (ready === 'False') counts.notReady++
  else counts.unknown++
  if (rollout === 'in progress') counts.rollingOut++
  if (rollout === 'stalled') counts.stalled++
}

interface Writer {
  rows(rows: readonly Row[]): Promise<void>
  end(counts: Counts, unread: readonly string[], namespace: string | undefined): Promise<void>
}

function textWriter(allNamespaces: boolean): Writer {
  const { stdout } = process
  const paint = painter({ colour: isColoured(stdout, environment()) })
  const columns = ['NAMESPACE', 'KIND/NAME', 'READY', 'REASON', 'MESSAGE', 'AGE'].slice(allNamespaces ? 0 : 1)
  const table = new Table(
    columns.map((title) => ({ title, isCut: title === 'MESSAGE' })),
    stdout.isTTY ? stdout.columns : undefined,
  )
  const cells = (row: Row): readonly string[] => [
    ...(allNamespaces ? [row.namespace] : []),
    `${row.kind.toLowerCase()}/${row.name}`,
    row.ready,
    row.reason,
    row.message,
    ageOf(row),
  ]
  return {
    async rows(rows) {
      if (rows.length === 0) return
      const lines = table.lines(rows.map(cells))
      const heads = lines.slice(0, lines.length - rows.length)
      const painted = lines.slice(heads.length).map((line, index) => {
        const row = rows[index]
        if (row?.ready === 'True' && row.rollout !== 'stalled') return line
        return paint(row?.ready === 'Unknown' ? 'yellow' : 'red', line)
      })
      await write(`${[...heads.map((line) => paint('bold', line)), ...painted].join('\n')}\n`)
    },
    async end(counts, unread, namespace) {
      for (const text of unread) printError(text)
      await write(`${totalsText(counts, namespace)}\n`)
    },
  }
}

function ageOf({ created }: Row): string {
  const since = Date.parse(created)
  return Number.isNaN(since) ? '' : ageText(Math.max(0, Date.now() - since))
}

function totalsText(counts: Counts, namespace: string | undefined): string {
  const where = namespace === undefined ? '' : ` in namespace ${namespace}`
  if (counts.objects === 0) return `No gatehouse.dev objects${where}`
  const parts = [
    [counts.ready, 'ready'],
    [counts.notReady, 'not ready'],
    [counts.unknown, 'unknown'],
    [counts.rollingOut, counts.rollingOut === 1 ? 'rollout in progress' : 'rollouts in progress'],
    [counts.stalled, 'stalled'],
  ] as const
  const shown = parts.filter(([number], index) => number > 0 || index === 0)
  return `${quantity(counts.objects, 'object')}${where}: ${shown.map(([number, text]) => `${number} ${text}`).join(', ')}`
}

function jsonWriter(): Writer {
  let isFirst = true
  return {
    async rows(rows) {
      for (const row of rows) {
        await write(
          `${isFirst ? '{"schema":"gatehouse.dev/cluster-status/v1","objects":[\n' : ',\n'}${visibleJson(JSON.stringify(row))}`,
        )
        isFirst = false
      }
    },
    async end(counts, unread) {
      const head = isFirst ? '{"schema":"gatehouse.dev/cluster-status/v1","objects":[' : ''
      await write(
        `${head}\n],"counts":${JSON.stringify(counts)},"unread":${visibleJson(JSON.stringify(unread))}}\n`,
      )
    },
  }
}

/** Waits if the reader is slow, so that unread output does not accumulate. */
async function write(text: string): Promise<void> {
  if (!process.stdout.write(text)) await once(process.stdout, 'drain')
}
