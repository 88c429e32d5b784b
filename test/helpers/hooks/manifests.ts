/**
 * Reads the manifests of the repository as objects, and renders the chart without Helm.
 *
 * The renderer knows exactly what the templates use: values, release namespace, app version, one condition per file, and
 * `toYaml | nindent`. Anything else is an error, so that a template cannot quietly use what no test looks at.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parse, parseAllDocuments, stringify } from 'yaml'
import { untyped } from '../untyped.ts'

export const manifestsFolder = resolve(import.meta.dirname, '../../../manifests')

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

/** Objects of a YAML text; documents with nothing but comments are left out. */
export function objectsIn(text: string): readonly Obj[] {
  return parseAllDocuments(text)
    .map((document): Obj | null => {
      if (document.errors[0]) throw document.errors[0]
      return document.toJS()
    })
    .filter((object) => object !== null)
}

/** Objects that a kustomization adds up to. Knows resources, components and nothing else. */
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

interface RenderContext {
  readonly values: unknown
  readonly namespace: string
  readonly version: string
}

/**
 * Templates that make none of our objects, or that only a cluster or Helm can answer: Helm itself renders them in its tests.
 */
const notRendered = new Set(['NOTES.txt', 'cluster.yaml', 'definitions.yaml', 'rules.yaml'])

/** The chart's objects, without its CRDs; `set` maps paths such as `hooks.replicas` to values. */
export function renderedChart(set: Readonly<Record<string, unknown>> = {}, namespace = 'gatehouse-system') {
  const chart = join(manifestsFolder, 'chart')
  const values: unknown = parse(readFileSync(join(chart, 'values.yaml'), 'utf8'))
  for (const [path, value] of Object.entries(set)) assign(values, path, value)
  const { appVersion }: { appVersion: string } = parse(readFileSync(join(chart, 'Chart.yaml'), 'utf8'))
  const context = { values, namespace, version: appVersion }
  return readdirSync(join(chart, 'templates'))
    .filter((name) => !notRendered.has(name))
    .toSorted()
    .flatMap((name) => objectsIn(render(readFileSync(join(chart, 'templates', name), 'utf8'), context)))
}

function render(template: string, context: RenderContext): string {
  const condition = /\n# \{\{- if (.+) \}\}\n([^]*)# \{\{- end \}\}\n$/.exec(template)
  if (condition && !holds(condition[1] ?? '', context)) return ''
  const body = condition ? (condition[2] ?? '') : template
  const text = body
    .replaceAll(
      /^ *# \{\{- if (.+) \}\}\n([^]*?)^ *# \{\{- end \}\}\n/gm,
      (_all, inner: string, lines: string) => (holds(inner, context) ? lines : ''),
    )
    .replaceAll(
      /# \{\{- with (?:merge \(dict\) )?([\w .]+) \}\}\{\{- toYaml \. \| nindent (\d+) \}\}\{\{- end \}\}/g,
      (_all, paths: string, by: string) => {
        const found = paths.split(' ').map((path) => lookup(context.values, path.replace('.Values.', '')))
        // Of maps the first wins; there is only one list.
        const value = found.length > 1 ? Object.assign({}, ...found.toReversed()) : found[0]
        return isEmpty(value) ? '#' : `#${block(value, Number(by))}`
      },
    )
    .replaceAll(
      /# \{\{- toYaml \.Values\.([\w.]+) \| nindent (\d+) \}\}/g,
      (_all, path: string, by: string) => `#${block(lookup(context.values, path), Number(by))}`,
    )
    .replaceAll('{{ .Release.Namespace }}', context.namespace)
    .replaceAll('{{ .Chart.AppVersion }}', context.version)
    .replaceAll('{{ list .Chart.AppVersion .Values | toJson | sha256sum | trunc 10 }}', '0123456789')
    .replaceAll(/\{\{ join `,` \.Values\.([\w.]+) \}\}/g, (_all, path: string) =>
      String(lookup(context.values, path)),
    )
    .replaceAll(/\{\{ \.Values\.([\w.]+) \}\}/g, (_all, path: string) => String(lookup(context.values, path)))
  const left = /\{\{.*/.exec(text)
  if (left) throw new Error(`the renderer does not know: ${left[0]}`)
  return text
}

function holds(condition: string, { values }: RenderContext): boolean {
  const compared = /^(eq|ne) \.Values\.([\w.]+) "([^"]*)"$/.exec(condition)
  if (compared) return (lookup(values, compared[2] ?? '') === compared[3]) === (compared[1] === 'eq')
  const plain = /^(not )?\.Values\.([\w.]+)$/.exec(condition)
  if (plain) {
    const value = lookup(values, plain[2] ?? '')
    return (value === false || isEmpty(value)) === (plain[1] !== undefined)
  }
  throw new Error(`the renderer does not know the condition: ${condition}`)
}

function block(value: unknown, by: number): string {
  const lines = stringify(value).trimEnd().split('\n')
  return lines.map((line) => `\n${' '.repeat(by)}${line}`).join('')
}

function lookup(values: unknown, path: string): unknown {
  const found = path.split('.').reduce((at, key) => untyped(at)?.[key], values)
  if (found === undefined) throw new Error(`values.yaml has no ${path}`)
  return found
}

function assign(values: unknown, path: string, value: unknown): void {
  lookup(values, path)
  const keys = path.split('.')
  const last = keys.pop() ?? ''
  untyped(keys.reduce((at, key) => untyped(at)[key], values))[last] = value
}

/** Without empty members, which an API server treats as absent. */
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
