/** Reads the manifests of the repository as objects, and renders the chart with Helm. */
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parse, parseAllDocuments } from 'yaml'
import { helm } from '../kube/helm.ts'
import { untyped } from '../untyped.ts'

export const manifestsFolder = resolve(import.meta.dirname, '../../../manifests')
const chartFolder = join(manifestsFolder, 'chart')

export interface Obj {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: {
    readonly name: string
    readonly namespace?: string
    readonly labels?: Readonly<Record<string, string>>
    readonly annotations?: Readonly<Record<string, string>>
  }
  readonly [member: string]: unknown
}

/** Returns the objects of a YAML text, without documents that contain only comments. */
export function objectsIn(text: string): readonly Obj[] {
  return parseAllDocuments(text)
    .map((document): Obj | null => {
      if (document.errors[0]) throw document.errors[0]
      return document.toJS()
    })
    .filter((object) => object !== null)
}

/** Returns the objects of a kustomization. Supports only resources and components. */
export function kustomized(folder = ''): readonly Obj[] {
  const at = join(manifestsFolder, folder)
  const listed: { resources?: string[]; components?: string[] } = parse(
    readFileSync(join(at, 'kustomization.yaml'), 'utf8'),
  )
  const { resources = [], components = [] } = listed
  return [...resources, ...components].flatMap((path) =>
    path.endsWith('.yaml') ? objectsIn(readFileSync(join(at, path), 'utf8')) : kustomized(join(folder, path)),
  )
}

export function idOf({ apiVersion, kind, metadata }: Obj): string {
  return [apiVersion, kind, metadata.namespace ?? '', metadata.name].join(' ')
}

/**
 * Returns the chart's objects as Helm renders them, without CRDs; `set` maps paths such as `hooks.replicas` to values.
 * Needs Helm (`helmMissing`). Throws with Helm's message when Helm rejects the values.
 */
export function renderedChart(set: Readonly<Record<string, unknown>> = {}, namespace = 'gatehouse-system') {
  const values = { definitions: { enabled: false } }
  for (const [path, value] of Object.entries(set)) assign(values, path.split('.'), value)
  const { code, stdout, stderr } = helm(
    ['template', 'x', chartFolder, '-n', namespace, '--kube-version', '1.36.0', '--values', '-'],
    undefined,
    JSON.stringify(values),
  )
  if (code !== 0) throw new Error(stderr)
  return objectsIn(stdout)
}

function assign(object: object, [key = '', ...rest]: readonly string[], value: unknown): void {
  const members = untyped(object)
  if (rest.length === 0) members[key] = value
  else assign((members[key] ??= {}), rest, value)
}

/** Removes empty members, which an API server treats as absent. */
export function withoutEmpty(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutEmpty)
  if (typeof value !== 'object' || value === null) return value
  const members = Object.entries(value).map(([key, member]) => [key, withoutEmpty(member)] as const)
  return Object.fromEntries(members.filter(([, member]) => !isEmpty(member)))
}

function isEmpty(value: unknown): boolean {
  if (value === '' || value === null) return true
  return typeof value === 'object' && Object.keys(value).length === 0
}
