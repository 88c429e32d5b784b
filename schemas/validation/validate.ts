/**
 * Validates documents: manifests of every kind, and the files that the runtime reads.
 *
 * As in the API server, defaults come first, then the schema, then rules. Returns all errors at once. The admission
 * webhook, the command line and the tests share this code. Does no I/O and does not look at other objects.
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

/**
 * Returns a function that uses the compiled validators to validate documents to which defaults have already been
 * applied. The function throws for an unknown definition.
 */
export function checker(validators: Readonly<Record<string, Validator>>) {
  return (name: string, document: unknown): Violation[] => {
    const validate = validators[name]
    if (!validate) throw new Error(`unknown validator ${name}`)
    const schema = definition(name)
    const violations = validate(document) ? [] : violationsOf(schema, document, validate.errors ?? [])
    const all = [...violations, ...checkRules(schema, document, '', violations)]
    return all.sort((a, b) => (a.path < b.path ? -1 : a.path > b.path ? 1 : 0))
  }
}

/** Returns the problems with a manifest; empty when it is valid. Ignores the status, because users do not write it. */
export function validateManifest(doc: unknown): readonly Violation[] {
  return validManifest(doc).violations
}

export type ManifestResult =
  | { readonly resource: Kinds[KindName]; readonly violations: readonly [] }
  | { readonly resource?: undefined; readonly violations: readonly Violation[] }

/** Returns a manifest with its defaults applied and its status removed, or its violations. */
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
 * Returns a deep copy of a manifest with schema defaults applied, like an object from the API server. Throws TypeError
 * for an unknown kind; an otherwise invalid document gets defaults where possible.
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

/** Returns a runtime file with its defaults applied, or its violations. */
export function validateRuntime<N extends RuntimeName>(name: N, doc: unknown): RuntimeResult<N> {
  const type = bundle.runtime[name]
  if (type === undefined) throw new TypeError(`unknown runtime file ${name}`)
  const beyond = boundsViolations(doc, runtimeSize)
  if (beyond.length > 0) return { violations: beyond }
  const config = filled(definition(type), doc)
  const violations = check(type, config)
  return isWithout(violations, name, config) ? { config, violations: [] } : { violations }
}

/** The cast is safe, because a document without violations has the type of its schema. */
function isWithout<N extends RuntimeName>(
  violations: readonly Violation[],
  _name: N,
  _document: unknown,
): _document is RuntimeFiles[N] {
  return violations.length === 0
}

/** Assumes that the document has its schema's type, although an invalid document may lack required fields. */
function isOfKind(document: unknown): document is Kinds[KindName] {
  return isFields(document) && isKindName(document.kind)
}

/** Removes the fields that only the API server and the hooks write, because their size is not limited. */
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

/** Returns a document's kind, or the reason why the document cannot be validated. */
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
