/**
 * Converts the documents of a set of files, each by its own form, and says of each what became of it.
 *
 * Objects that the conversion adds stand in the file of the document that they are for; their Secrets in one file of
 * their own. Documents of other API groups stay as they are.
 */
import { basename, extname } from 'node:path'
import { apiVersion, type Fields, fieldsOf, own, validateRuntime } from '../../../schemas/index.ts'
import { objectName } from '../../toolkit/clients/index.ts'
import { convertAuthzFile, isAuthzFile } from './files/authz-file.ts'
import { convertRunConfig, isRunConfig } from './files/run-config.ts'
import { convertWebhookFile, isWebhookFile } from './files/webhooks.ts'
import { MigrationDraft, type MigrationOptions, type ObjectContext } from './objects/draft.ts'
import { absentKinds, kindRules } from './objects/kinds.ts'
import { convertObject, settle } from './objects/object.ts'
import { type MigrationOutcome, outcomeOf, type MigrationRow } from './row.ts'
import { convertVirtualServer } from './objects/shared-rules.ts'

export interface SourceDocument {
  readonly doc: Fields
  /** As it is shown, and as the name of the written file is made of it. */
  readonly file: string
  /** One-based line of a field. */
  readonly lineOf: (path: string) => number
}

export interface Migrated {
  readonly file: string
  readonly line: number
  /** What it is: `MCPServer/fetch`, `run configuration`, `virtual server`, … */
  readonly subject: string
  readonly outcome: MigrationOutcome
  readonly rows: readonly (MigrationRow & { readonly line: number })[]
  /** `Kind/name` of what is written for it; empty when nothing is. */
  readonly made: readonly string[]
}

export interface Migration {
  readonly documents: readonly Migrated[]
  /** What is written, by source file: manifests, or the one file of a virtual server. */
  readonly files: ReadonlyMap<string, readonly Fields[]>
  /** Secrets that the conversion made. Some values are empty, to be filled in. */
  readonly secrets: readonly Fields[]
}

const group = 'toolhive.stacklok.dev'

export function migrate(sources: readonly SourceDocument[], options: MigrationOptions): Migration {
  const names = new Names(sources)
  const files = new Map<string, Fields[]>()
  const secrets: Fields[] = []
  const documents = sources.map((source): Migrated => {
    const added: Fields[] = []
    const context = { ...options, ...adders(source, names, added) }
    const { subject, draft, outcome, shown } = convertOne(source, context)
    const isWritten = draft !== undefined && outcome !== 'not converted' && outcome !== 'skipped'
    const made = isWritten ? [...added, draft] : []
    const open = made.filter(({ kind }) => kind !== 'Secret' || outcome === 'unchanged')
    if (open.length > 0) files.set(source.file, [...(files.get(source.file) ?? []), ...open])
    if (outcome !== 'unchanged') secrets.push(...made.filter(({ kind }) => kind === 'Secret'))
    return {
      file: source.file,
      line: source.lineOf(''),
      subject,
      outcome,
      rows: shown.map((row) => ({ ...row, line: source.lineOf(row.field) })),
      made: outcome === 'unchanged' ? [] : made.map(idOf),
    }
  })
  return { documents, files, secrets }
}

interface One {
  readonly subject: string
  readonly outcome: MigrationOutcome
  /** What is written, when anything is. */
  readonly draft: Fields | undefined
  readonly shown: readonly MigrationRow[]
}

function convertOne({ doc, file }: SourceDocument, context: ObjectContext): One {
  const { apiVersion: version, kind } = doc
  if (typeof version === 'string' && version.split('/')[0] === group) return ofKind(doc, context)
  if (isVmcpFile(doc)) return result('virtual server', convertVmcpFile(doc, context.tools))
  if (isRunConfig(doc)) return result('run configuration', convertRunConfig(doc, context))
  if (isAuthzFile(doc)) return result('policies', convertAuthzFile(doc, nameOf(file, 'policies'), context))
  if (isWebhookFile(doc))
    return result('webhooks', convertWebhookFile(doc, nameOf(file, 'webhooks'), context))
  if (typeof version === 'string' && typeof kind === 'string')
    return { subject: idOf(doc), outcome: 'unchanged', draft: doc, shown: [] }
  const text = 'is no object, run configuration, virtual server, file of policies or of webhooks'
  return {
    subject: 'document',
    outcome: 'skipped',
    draft: undefined,
    shown: [{ field: '', effect: 'differs', text }],
  }
}

function ofKind(doc: Fields, context: ObjectContext): One {
  const kind = String(doc['kind'])
  if (Object.hasOwn(kindRules, kind)) return result(idOf(doc), convertObject(doc, context))
  const absent = own(absentKinds, kind)
  const shown =
    absent === undefined
      ? ({ field: 'kind', effect: 'refused', text: 'this kind is not known' } as const)
      : ({ field: 'kind', effect: 'differs', text: absent } as const)
  const outcome = absent === undefined ? 'not converted' : 'skipped'
  return { subject: idOf(doc), outcome, draft: undefined, shown: [shown] }
}

function result(subject: string, { doc, rows }: MigrationDraft): One {
  return { subject, outcome: outcomeOf(rows), draft: doc, shown: rows }
}

function idOf(doc: Fields): string {
  const { name } = fieldsOf(doc['metadata'])
  if (typeof doc['kind'] !== 'string') return 'configuration file'
  return `${doc['kind']}/${typeof name === 'string' ? name : '(no name)'}`
}

function nameOf(file: string, ofInput: string): string {
  return file === '-' ? ofInput : objectName(basename(file, extname(file)))
}

/** The names that are taken, of the documents and of what was added. */
class Names {
  readonly #taken = new Set<string>()

  constructor(sources: readonly SourceDocument[]) {
    for (const { doc } of sources) {
      const { name, namespace } = fieldsOf(doc['metadata'])
      this.#taken.add(keyOf(String(doc['kind']), namespace, String(name)))
    }
  }

  /** False when it is taken already. */
  claim(kind: string, namespace: unknown, name: string): boolean {
    const key = keyOf(kind, namespace, name)
    if (this.#taken.has(key)) return false
    this.#taken.add(key)
    return true
  }
}

function keyOf(kind: string, namespace: unknown, name: string): string {
  return `${kind} ${typeof namespace === 'string' ? namespace : ''} ${name}`
}

function adders(
  { doc }: SourceDocument,
  names: Names,
  added: Fields[],
): Pick<ObjectContext, 'add' | 'share'> {
  const { namespace } = fieldsOf(doc['metadata'])
  const push = (kind: string, name: string, body: Fields): void => {
    const metadata = { name, ...(typeof namespace === 'string' && { namespace }) }
    added.push({ apiVersion: kind === 'Secret' ? 'v1' : apiVersion, kind, metadata, ...body })
  }
  return {
    add: (kind, wanted, body) => {
      let name = objectName(wanted)
      for (let n = 2; !names.claim(kind, namespace, name); n++) name = objectName(`${wanted}-${n}`)
      push(kind, name, body)
      return name
    },
    share: (kind, name, body) => {
      if (names.claim(kind, namespace, name)) push(kind, name, body)
    },
  }
}

function isVmcpFile(doc: Fields): boolean {
  if (doc['apiVersion'] !== undefined || doc['kind'] !== undefined) return false
  const sections = ['incomingAuth', 'outgoingAuth', 'aggregation', 'backends', 'operational']
  return ('groupRef' in doc || 'group' in doc) && sections.some((section) => section in doc)
}

/** Converts a configuration file of a virtual server, which differs from ours in a few names only. */
function convertVmcpFile(doc: Fields, tools: ReadonlyMap<string, string>): MigrationDraft {
  const draft = new MigrationDraft(doc)
  draft.rename('group', 'groupRef')
  convertVirtualServer(draft, '', tools)
  settle(draft, { violationsOf: (config) => validateRuntime('vmcp', config).violations })
  return draft
}
