/**
 * Checks documents: manifests of every kind, and the files that the runtime reads.
 *
 * Order as in the API server: defaults, then the schema, then rules. All errors at once. The same code serves the
 * admission webhook, the command line and the tests. Does no I/O and looks at no other object.
 */
import { isFields } from './fields.ts'
import { bundle, definition } from './bundle.ts'
import { violationsOf } from './messages.ts'
import { checkRules } from './rules.ts'
import { filled } from './defaults.ts'
import type { Kinds, RuntimeFiles } from '../generated/types.ts'
import * as compiled from '../generated/validators.js'
import { isKindName, type KindName, kinds } from '../kinds.ts'
import { nearest, oneOf, type Violation, shapeOf } from './violations.ts'
import { apiVersion, type SchemaError } from '../schema.ts'
import { boundsViolations, manifestSize, runtimeSize } from './size.ts'

export type RuntimeName = keyof RuntimeFiles

const check = checker(compiled)

type Validator = ((data: unknown) => boolean) & { errors?: readonly SchemaError[] | null }

/** A check of documents, their defaults filled in, with the compiled validators of some definitions. It throws for the name of another. */
export function checker(validators: Readonly<Record<string, Validator>>) {
  return (name: string, document: unknown): Violation[] => {
    const validate = validators[name]
    if (!validate) throw new Error(`no validator is called ${name}`)
    const schema = definition(name)
    const violations = validate(document) ? [] : violationsOf(schema, document, validate.errors ?? [])
    const all = [...violations, ...checkRules(schema, document, '', violations)]
    return all.sort((a, b) => (a.path < b.path ? -1 : a.path > b.path ? 1 : 0))
  }
}

/** Problems of a manifest; empty when it is valid. The status is not checked: users do not write it. */
export function validateManifest(doc: unknown): readonly Violation[] {
  return validManifest(doc).violations
}

export type ManifestResult =
  | { readonly resource: Kinds[KindName]; readonly violations: readonly [] }
  | { readonly resource?: undefined; readonly violations: readonly Violation[] }

/** A manifest without its status, with its defaults filled in, or its violations. */
export function validManifest(doc: unknown): ManifestResult {
  const beyond = boundsViolations(isFields(doc) ? withoutSystemFields(doc) : doc, manifestSize)
  if (beyond.length > 0) return { violations: beyond }
  const kind = kindIn(doc)
  if (typeof kind !== 'string') return { violations: kind }
  const resource = filled(definition(kind), withoutStatus(doc))
  const violations = check(kind, resource)
  return violations.length === 0 && isOfKind(resource) ? { resource, violations: [] } : { violations }
}

/**
 * A deep copy of a manifest with the schema defaults filled in, like an object read from the API server.
 * Throws TypeError when the document is of no known kind; a document that is otherwise invalid is filled as far as
 * possible.
 */
export function withDefaults<K extends KindName>(doc: { readonly kind: K }): Kinds[K]
export function withDefaults(doc: unknown): Kinds[KindName]
export function withDefaults(doc: unknown): Kinds[KindName] {
  const kind = kindIn(doc)
  if (typeof kind !== 'string')
    throw new TypeError(kind.map(({ path, message }) => `${path}: ${message}`).join('\n'))
  const document = filled(definition(kind), doc)
  if (!isOfKind(document)) throw new TypeError('expected an object')
  return document
}

export type RuntimeResult<N extends RuntimeName> =
  | { readonly config: RuntimeFiles[N]; readonly violations: readonly [] }
  | { readonly config?: undefined; readonly violations: readonly Violation[] }

/** A runtime file with its defaults filled in, or its violations. */
export function validateRuntime<N extends RuntimeName>(name: N, doc: unknown): RuntimeResult<N> {
  const type = bundle.runtime[name]
  if (type === undefined) throw new TypeError(`no runtime file is called ${name}`)
  const beyond = boundsViolations(doc, runtimeSize)
  if (beyond.length > 0) return { violations: beyond }
  const config = filled(definition(type), doc)
  const violations = check(type, config)
  return isWithout(violations, name, config) ? { config, violations: [] } : { violations }
}

/** A document without violations is of the type that its schema describes. */
function isWithout<N extends RuntimeName>(
  violations: readonly Violation[],
  _name: N,
  _document: unknown,
): _document is RuntimeFiles[N] {
  return violations.length === 0
}

/** As far as types go: an invalid document may still miss what its type promises. */
function isOfKind(document: unknown): document is Kinds[KindName] {
  return isFields(document) && isKindName(document.kind)
}

/** What only the API server and the hooks write: as large as it is. */
function withoutSystemFields({ status: _, metadata, ...rest }: Readonly<Record<string, unknown>>): unknown {
  if (!isFields(metadata)) return { ...rest, metadata }
  const { managedFields: _managed, ...own } = metadata
  return { ...rest, metadata: own }
}

function withoutStatus(doc: unknown): unknown {
  if (!isFields(doc) || !('status' in doc)) return doc
  const { status: _, ...rest } = doc
  return rest
}

/** The kind that a document says it is, or why it cannot be checked. */
function kindIn(doc: unknown): KindName | readonly Violation[] {
  if (!isFields(doc)) return [{ path: '', message: `expected an object, found ${shapeOf(doc)}` }]
  const names = kinds.map(({ kind }) => kind)
  const { kind } = doc
  if (isKindName(kind)) return kind
  const known = `one of ${oneOf(names)}`
  if (kind === undefined) return [{ path: 'kind', message: `is required: expected ${known}` }]
  const guess = typeof kind === 'string' ? nearest(kind, names) : undefined
  const hint = guess === undefined ? `; ${apiVersion} has ${known}` : `; did you mean "${guess}"?`
  const what = typeof kind === 'string' && /^[A-Za-z0-9]{1,63}$/.test(kind) ? `"${kind}"` : shapeOf(kind)
  return [{ path: 'kind', message: `unknown kind ${what}${hint}` }]
}
