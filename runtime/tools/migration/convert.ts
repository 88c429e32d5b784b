/**
 * Converts a set of documents, each according to its form, and reports each outcome.
 *
 * Objects that the conversion adds for a document are written to the same file. Secrets are written to a separate file.
 * Documents in other API groups stay unchanged.
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
  /** Path for messages. The output file's name is derived from this path. */
  readonly file: string
  /** One-based line of a field. */
  readonly lineOf: (path: string) => number
}

export interface MigratedDocument {
  readonly file: string
  readonly line: number
  /** A description of the document: `MCPServer/fetch`, `run configuration`, `virtual server`, … */
  readonly subject: string
  readonly outcome: MigrationOutcome
  readonly rows: readonly (MigrationRow & { readonly line: number })[]
  /** `Kind/name` of the objects written for the document. May be empty. */
  readonly made: readonly string[]
}

export interface Migration {
  readonly documents: readonly MigratedDocument[]
  /** The output for each source file: manifests, or a virtual server's file. */
  readonly files: ReadonlyMap<string, readonly Fields[]>
  /** Secrets that the conversion created. Empty values must be filled in. */
  readonly secrets: readonly Fields[]
}

const group = 'toolhive.stacklok.dev'

export function migrate(sources: readonly SourceDocument[], options: MigrationOptions): Migration {
  const names = new Names(sources)
  const files = new Map<string, Fields[]>()
  const secrets: Fields[] = []
  const documents = sources.map((source): MigratedDocument => {
    const added: Fields[] = []
    const context = { ...options, ...makeAdders(source, names, added) }
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

interface DocumentResult {
  readonly subject: string
  readonly outcome: MigrationOutcome
  /** The document to write, if any. */
  readonly draft: Fields | undefined
  readonly shown: readonly MigrationRow[]
}

function convertOne({ doc, file }: SourceDocument, context: ObjectContext): DocumentResult {
  const { apiVersion: version, kind } = doc
  if (typeof version === 'string' && version.split('/')[0] === group) return ofKind(doc, context)
  if (isVmcpFile(doc)) return result('virtual server', convertVmcpFile(doc, context.tools))
  if (isRunConfig(doc)) return result('run configuration', convertRunConfig(doc, context))
  if (isAuthzFile(doc)) return result('policies', convertAuthzFile(doc, nameOf(file, 'policies'), context))
  if (isWebhookFile(doc))
    return result('webhooks', convertWebhookFile(doc, nameOf(file, 'webhooks'), context))
  if (typeof version === 'string' && typeof kind === 'string')
    return { subject: idOf(doc), outcome: 'unchanged', draft: doc, shown: [] }
  const text = 'is not an object, run configuration, virtual server, policy file or webhook file'
  return {
    subject: 'document',
    outcome: 'skipped',
    draft: undefined,
    shown: [{ field: '', effect: 'differs', text }],
  }
}

function ofKind(doc: Fields, context: ObjectContext): DocumentResult {
  const kind = String(doc['kind'])
  if (Object.hasOwn(kindRules, kind)) return result(idOf(doc), convertObject(doc, context))
  const absent = own(absentKinds, kind)
  const shown =
    absent === undefined
      ? ({ field: 'kind', effect: 'refused', text: 'unknown kind' } as const)
      : ({ field: 'kind', effect: 'differs', text: absent } as const)
  const outcome = absent === undefined ? 'not converted' : 'skipped'
  return { subject: idOf(doc), outcome, draft: undefined, shown: [shown] }
}

function result(subject: string, { doc, rows }: MigrationDraft): DocumentResult {
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

/** Names in use by the documents and the added objects. */
class Names {
  readonly #used = new Set<string>()

  constructor(sources: readonly SourceDocument[]) {
    for (const { doc } of sources) {
      const { name, namespace } = fieldsOf(doc['metadata'])
      this.#used.add(keyOf(String(doc['kind']), namespace, String(name)))
    }
  }

  /** Returns false when the name is already in use. */
  claim(kind: string, namespace: unknown, name: string): boolean {
    const key = keyOf(kind, namespace, name)
    if (this.#used.has(key)) return false
    this.#used.add(key)
    return true
  }
}

function keyOf(kind: string, namespace: unknown, name: string): string {
  return `${kind} ${typeof namespace === 'string' ? namespace : ''} ${name}`
}

function makeAdders(
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

/** Converts a virtual server's configuration file, which differs from ours only in a few names. */
function convertVmcpFile(doc: Fields, tools: ReadonlyMap<string, string>): MigrationDraft {
  const draft = new MigrationDraft(doc)
  draft.rename('group', 'groupRef')
  convertVirtualServer(draft, '', tools)
  settle(draft, { violationsOf: (config) => validateRuntime('vmcp', config).violations })
  return draft
}
