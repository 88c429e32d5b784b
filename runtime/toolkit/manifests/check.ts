/**
 * Checks manifests with the webhook's own code, offline, and points each problem at its file and line.
 */
import { fieldsOf, formatViolations, kindOf, type Violation } from '../../../schemas/index.ts'
import { oneSet, type SetsOf } from './kustomizations.ts'
import type { Manifest } from './read.ts'

export interface CheckedManifest {
  readonly manifest: Manifest
  readonly violations: readonly Violation[]
  readonly warnings: readonly string[]
  /** Secrets and ConfigMaps that the document names and that are not given. */
  readonly unchecked: readonly Unchecked[]
}

interface Unchecked {
  readonly kind: string
  readonly name: string
}

const nothing = { violations: [], warnings: [], unchecked: [] }

/** The webhook's function for one resource. */
export type ValidateResource = (doc: unknown) => {
  readonly violations: readonly Violation[]
  readonly warnings: readonly string[]
}

/** The hooks' check of what documents refer to, among all of them. */
export type ReferenceCheck = (
  docs: readonly unknown[],
) => (doc: unknown) => Pick<CheckedManifest, 'violations' | 'warnings' | 'unchecked'>

/** `Kind/name` as kubectl prints it, or what can be said of a document that lacks them. */
export function nameOf(manifest: Manifest): string {
  const { kind, metadata } = manifest.doc as { kind?: unknown; metadata?: { name?: unknown } | null }
  const name = typeof metadata?.name === 'string' ? metadata.name : '(no name)'
  return `${typeof kind === 'string' ? kind : '(no kind)'}/${name}`
}

/** True for documents of this project's API group; other kinds are the API server's business. */
export function isOurs(manifest: Manifest): boolean {
  const { apiVersion, kind } = manifest.doc
  if (typeof apiVersion === 'string') return apiVersion.split('/')[0] === 'gatehouse.dev'
  return apiVersion === undefined && typeof kind === 'string' && kindOf(kind) !== undefined
}

export interface CheckParts {
  readonly validate: ValidateResource
  readonly references?: ReferenceCheck
  /** Sets of files that are applied apart; without it, all of them are applied together. */
  readonly setsOf?: SetsOf
  /** Objects that kustomizations make: they can be referred to. */
  readonly generated?: readonly Pick<Manifest, 'doc' | 'file'>[]
}

/**
 * Validates every document of ours, that no two share kind, namespace and name, and with `references` what they refer to.
 * A document that belongs to sets is compared with those of the same sets and those of none.
 */
export function checkManifests(
  manifests: readonly Manifest[],
  { validate, references = () => () => nothing, setsOf = oneSet, generated = [] }: CheckParts,
): CheckedManifest[] {
  const placed = manifests.map((manifest) => ({ manifest, sets: setsOf(manifest.file) }))
  const given = [...manifests, ...generated].map(({ doc, file }) => ({ doc, sets: setsOf(file) }))
  const checks = new Map<ReadonlySet<string>, ReturnType<ReferenceCheck>>()
  const checkOf = (sets: ReadonlySet<string>) => {
    const check =
      checks.get(sets) ?? references(given.filter((other) => meet(sets, other.sets)).map(({ doc }) => doc))
    checks.set(sets, check)
    return check
  }
  const seen = new Map<string, typeof placed>()
  return placed
    .filter(({ manifest }) => isOurs(manifest))
    .map(({ manifest, sets }) => {
      const { violations, warnings } = validate(manifest.doc)
      const referring = checkOf(sets)(manifest.doc)
      const key = `${nameOf(manifest)} ${namespaceOf(manifest)}`
      const others = seen.get(key) ?? []
      const first = others.find((other) => meet(sets, other.sets))?.manifest
      seen.set(key, [...others, { manifest, sets }])
      const duplicate: Violation[] = first
        ? [{ path: 'metadata.name', message: `is taken already, at ${first.file}:${first.line}` }]
        : []
      return {
        manifest,
        violations: [...violations, ...referring.violations, ...duplicate],
        warnings: [...warnings, ...referring.warnings],
        unchecked: referring.unchecked,
      }
    })
}

function meet(a: ReadonlySet<string>, b: ReadonlySet<string>): boolean {
  return a.size === 0 || b.size === 0 || !a.isDisjointFrom(b)
}

/** How many objects that are named were not given, in one sentence; undefined when none. */
export function describeUnchecked(checked: readonly CheckedManifest[]): string | undefined {
  const named = checked.flatMap(({ manifest, unchecked }) =>
    unchecked.map(({ kind, name }) => ({ kind, id: `${namespaceOf(manifest)}/${name}` })),
  )
  const counts = ['Secret', 'ConfigMap'].flatMap((kind) => {
    const { size } = new Set(named.filter((one) => one.kind === kind).map(({ id }) => id))
    return size === 0 ? [] : [{ size, text: `${size} ${kind}${size === 1 ? '' : 's'}` }]
  })
  if (counts.length === 0) return undefined
  const isOne = counts.length === 1 && counts[0]?.size === 1
  const what = counts.map(({ text }) => text).join(' and ')
  return isOne
    ? `${what} is not given; its name was not checked`
    : `${what} are not given; their names were not checked`
}

function namespaceOf({ doc }: Manifest): string {
  const { namespace } = fieldsOf(doc['metadata'])
  return typeof namespace === 'string' ? namespace : 'default'
}

/** One block per document with problems: where, which resource, and each problem on a line of its own. */
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
