/** Checks manifests offline with the webhook's code, and reports each problem with file and line. */
import { fieldsOf, formatViolations, kindOf, type Violation } from '../../../schemas/index.ts'
import { oneSet, type SetsOf } from './kustomizations.ts'
import type { Manifest } from './read.ts'

export interface CheckedManifest {
  readonly manifest: Manifest
  readonly violations: readonly Violation[]
  readonly warnings: readonly string[]
  /** Secrets and ConfigMaps that the document refers to but that are not in the input. */
  readonly unchecked: readonly Unchecked[]
}

interface Unchecked {
  readonly kind: string
  readonly name: string
}

const nothing = { violations: [], warnings: [], unchecked: [] }

/** Validates one resource as the webhook does. */
export type ValidateResource = (doc: unknown) => {
  readonly violations: readonly Violation[]
  readonly warnings: readonly string[]
}

/** Returns the check that the hooks apply to a document's references to other documents. */
export type ReferenceCheck = (
  docs: readonly unknown[],
) => (doc: unknown) => Pick<CheckedManifest, 'violations' | 'warnings' | 'unchecked'>

/** Returns `Kind/name` as kubectl prints it, with placeholders for missing fields. */
export function nameOf(manifest: Manifest): string {
  const { kind, metadata } = manifest.doc as { kind?: unknown; metadata?: { name?: unknown } | null }
  const name = typeof metadata?.name === 'string' ? metadata.name : '(no name)'
  return `${typeof kind === 'string' ? kind : '(no kind)'}/${name}`
}

/** True for documents of this project's API group. The API server validates other kinds. */
export function isOurs(manifest: Manifest): boolean {
  const { apiVersion, kind } = manifest.doc
  if (typeof apiVersion === 'string') return apiVersion.split('/')[0] === 'gatehouse.dev'
  return apiVersion === undefined && typeof kind === 'string' && kindOf(kind) !== undefined
}

export interface CheckParts {
  readonly validate: ValidateResource
  readonly references?: ReferenceCheck
  /** Sets of files that are applied separately. Default: a single set. */
  readonly setsOf?: SetsOf
  /** The objects that kustomizations generate. References to these objects are valid. */
  readonly generated?: readonly Pick<Manifest, 'doc' | 'file'>[]
}

/**
 * Validates all of this project's documents, detects duplicate combinations of kind, namespace and name, and checks
 * references. A document that belongs to sets is compared with documents in the same sets and with documents that
 * belong to no set.
 */
export function checkManifests(
  manifests: readonly Manifest[],
  { validate, references = () => () => nothing, setsOf = oneSet, generated = [] }: CheckParts,
): CheckedManifest[] {
  const documents = manifests.map((manifest) => ({ manifest, sets: setsOf(manifest.file) }))
  const known = [...manifests, ...generated].map(({ doc, file }) => ({ doc, sets: setsOf(file) }))
  const checks = new Map<ReadonlySet<string>, ReturnType<ReferenceCheck>>()
  const checkOf = (sets: ReadonlySet<string>) => {
    const check =
      checks.get(sets) ??
      references(known.filter((other) => isSameSet(sets, other.sets)).map(({ doc }) => doc))
    checks.set(sets, check)
    return check
  }
  const seen = new Map<string, typeof documents>()
  return documents
    .filter(({ manifest }) => isOurs(manifest))
    .map(({ manifest, sets }) => {
      const { violations, warnings } = validate(manifest.doc)
      const referring = checkOf(sets)(manifest.doc)
      const key = `${nameOf(manifest)} ${namespaceOf(manifest)}`
      const others = seen.get(key) ?? []
      const first = others.find((other) => isSameSet(sets, other.sets))?.manifest
      seen.set(key, [...others, { manifest, sets }])
      const duplicate: Violation[] = first
        ? [{ path: 'metadata.name', message: `is already used at ${first.file}:${first.line}` }]
        : []
      return {
        manifest,
        violations: [...violations, ...referring.violations, ...duplicate],
        warnings: [...warnings, ...referring.warnings],
        unchecked: referring.unchecked,
      }
    })
}

function isSameSet(a: ReadonlySet<string>, b: ReadonlySet<string>): boolean {
  return a.size === 0 || b.size === 0 || !a.isDisjointFrom(b)
}

/**
 * Describes in one sentence how many referenced objects are not in the input. Undefined when all referenced objects are
 * in the input.
 */
export function describeUnchecked(checked: readonly CheckedManifest[]): string | undefined {
  const named = checked.flatMap(({ manifest, unchecked }) =>
    unchecked.map(({ kind, name }) => ({ kind, id: `${namespaceOf(manifest)}/${name}` })),
  )
  const counts = ['Secret', 'ConfigMap'].flatMap((kind) => {
    const { size } = new Set(named.filter((reference) => reference.kind === kind).map(({ id }) => id))
    return size === 0 ? [] : [{ size, text: `${size} ${kind}${size === 1 ? '' : 's'}` }]
  })
  if (counts.length === 0) return undefined
  const isOne = counts.length === 1 && counts[0]?.size === 1
  const what = counts.map(({ text }) => text).join(' and ')
  return isOne
    ? `${what} is not in the input; its name was not checked`
    : `${what} are not in the input; their names were not checked`
}

function namespaceOf({ doc }: Manifest): string {
  const { namespace } = fieldsOf(doc['metadata'])
  return typeof namespace === 'string' ? namespace : 'default'
}

/** Returns one line per violation, with file, line and resource. */
export function describeViolations(checked: readonly CheckedManifest[]): string {
  return checked
    .filter(({ violations }) => violations.length > 0)
    .map(({ manifest, violations }) =>
      violations
        .map((violation) => {
          const line = manifest.lineOf(violation.path)
          return `${manifest.file}:${line}: ${nameOf(manifest)}: ${formatViolations([violation])}`
        })
        .join('\n'),
    )
    .join('\n')
}
