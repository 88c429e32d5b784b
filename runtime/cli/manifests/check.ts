/**
 * Checks manifests with the webhook's own code, offline, and points each problem at its file and line.
 */
import { formatViolations, kindOf, type Violation } from '../../../schemas/index.ts'
import { oneSet, type SetsOf } from './kustomizations.ts'
import type { Manifest } from './read.ts'

export interface Checked {
  readonly manifest: Manifest
  readonly problems: readonly Violation[]
  readonly warnings: readonly string[]
}

const nothing = { problems: [], warnings: [] }

/** The webhook's function for one resource. */
export type ValidateResource = (doc: unknown) => {
  readonly problems: readonly Violation[]
  readonly warnings: readonly string[]
}

/** The hooks' check of what documents refer to, among all of them. */
export type ReferenceCheck = (docs: readonly unknown[]) => ValidateResource

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
}

/**
 * Validates every document of ours, that no two share kind, namespace and name, and with `references` what they refer to.
 * A document that belongs to sets is compared with those of the same sets and those of none.
 */
export function checkManifests(
  manifests: readonly Manifest[],
  { validate, references = () => () => nothing, setsOf = oneSet }: CheckParts,
): Checked[] {
  const placed = manifests.map((manifest) => ({ manifest, sets: setsOf(manifest.file) }))
  const checks = new Map<ReadonlySet<string>, ValidateResource>()
  const checkOf = (sets: ReadonlySet<string>) => {
    const check =
      checks.get(sets) ??
      references(placed.filter((other) => meet(sets, other.sets)).map(({ manifest }) => manifest.doc))
    checks.set(sets, check)
    return check
  }
  const seen = new Map<string, typeof placed>()
  return placed
    .filter(({ manifest }) => isOurs(manifest))
    .map(({ manifest, sets }) => {
      const { problems, warnings } = validate(manifest.doc)
      const referring = checkOf(sets)(manifest.doc)
      const namespace = (manifest.doc as { metadata?: { namespace?: unknown } }).metadata?.namespace
      const key = `${nameOf(manifest)} ${typeof namespace === 'string' ? namespace : 'default'}`
      const others = seen.get(key) ?? []
      const first = others.find((other) => meet(sets, other.sets))?.manifest
      seen.set(key, [...others, { manifest, sets }])
      const duplicate: Violation[] = first
        ? [{ path: 'metadata.name', message: `is taken already, at ${first.file}:${first.line}` }]
        : []
      return {
        manifest,
        problems: [...problems, ...referring.problems, ...duplicate],
        warnings: [...warnings, ...referring.warnings],
      }
    })
}

function meet(a: ReadonlySet<string>, b: ReadonlySet<string>): boolean {
  return a.size === 0 || b.size === 0 || !a.isDisjointFrom(b)
}

/** One block per document with problems: where, which resource, and each problem on a line of its own. */
export function describeViolations(checked: readonly Checked[]): string {
  return checked
    .filter(({ problems }) => problems.length > 0)
    .map(({ manifest, problems }) =>
      problems
        .map((problem) => {
          const line = manifest.lineOf(problem.path)
          return `${manifest.file}:${line}: ${nameOf(manifest)}: ${formatViolations([problem])}`
        })
        .join('\n'),
    )
    .join('\n')
}
