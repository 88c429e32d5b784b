/**
 * Checks manifests with the webhook's own code, offline, and points each problem at its file and line.
 */
import { formatViolations, kindOf, type Violation } from '../../../schemas/index.ts'
import type { Manifest } from './read.ts'

export interface Checked {
  readonly manifest: Manifest
  readonly problems: readonly Violation[]
  readonly warnings: readonly string[]
}

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

/**
 * Validates every document of ours, that no two share kind, namespace and name, and with `references` what they refer to.
 */
export function checkManifests(
  manifests: readonly Manifest[],
  validate: ValidateResource,
  references: ReferenceCheck = () => () => ({ problems: [], warnings: [] }),
): Checked[] {
  const checkReferences = references(manifests.map(({ doc }) => doc))
  const seen = new Map<string, Manifest>()
  return manifests.filter(isOurs).map((manifest) => {
    const { problems, warnings } = validate(manifest.doc)
    const referring = checkReferences(manifest.doc)
    const namespace = (manifest.doc as { metadata?: { namespace?: unknown } }).metadata?.namespace
    const key = `${nameOf(manifest)} ${typeof namespace === 'string' ? namespace : 'default'}`
    const first = seen.get(key)
    seen.set(key, first ?? manifest)
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
