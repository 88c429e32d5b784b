/**
 * Reads the schema sources and combines their definitions into one bundle.
 *
 * Definition names are global: a `$ref` in a source (`file.json#/$defs/Name`) becomes `#/$defs/Name`. Annotations next
 * to a `$ref` are kept; any other keyword extends the referenced object (properties are merged, `required` and rules
 * are added). An object with a title becomes a separate definition. Rejects objects that are not closed, duplicate
 * names and unresolved references.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { apiVersion, type Bundle, type KindInfo, type PrinterColumn, type Schema } from '../schema.ts'
import { withHeaderRules } from './headers.ts'
import { byText } from '../canonical.ts'

interface KindSource {
  readonly plural: string
  readonly shortNames: readonly string[]
  readonly scale?: boolean
  readonly columns: readonly PrinterColumn[]
  readonly examples?: Readonly<Record<string, unknown>>
}

interface Source extends Schema {
  readonly $defs: Readonly<Record<string, Schema>>
  readonly 'x-gatehouse'?: KindSource
  readonly 'x-runtime'?: string
}

const annotations = new Set(['$ref', 'description', 'default', 'x-expects', 'nullable'])

/** Reads `<root>/kinds/*.json` and `<root>/runtime/*.json`. */
export function loadBundle(root: string): Bundle {
  const raw = new Map<string, Schema>()
  const kinds: KindInfo[] = []
  const runtime: Record<string, string> = {}
  for (const file of sourceFiles(root)) {
    const source: Source = withHeaderRules(JSON.parse(readFileSync(file, 'utf8')))
    for (const [name, schema] of Object.entries(source.$defs)) add(raw, name, schema, file)
    const info = source['x-gatehouse']
    if (info) kinds.push(kindInfo(source, info))
    if (source['x-runtime'] !== undefined) runtime[source['x-runtime']] = source.title ?? ''
  }
  kinds.sort((a, b) => byText(a.kind, b.kind))
  for (const kind of kinds) add(raw, kind.kind, envelope(kind, raw), kind.kind)
  const defs: Record<string, Schema> = {}
  for (const name of [...raw.keys()].sort()) {
    defs[name] = settle(raw.get(name) ?? {}, raw, defs, name)
  }
  return {
    kinds,
    runtime,
    defs: reachable(defs, [...kinds.map(({ kind }) => kind), ...Object.values(runtime)]),
  }
}

/**
 * Returns the definitions that the documents use, sorted by name. Drops definitions that serve only as the base of
 * other definitions.
 */
function reachable(defs: Readonly<Record<string, Schema>>, roots: readonly string[]): Record<string, Schema> {
  const found = new Set<string>()
  const visit = (name: string): void => {
    if (found.has(name)) return
    found.add(name)
    for (const ref of refsIn(defs[name])) visit(ref)
  }
  for (const root of roots) visit(root)
  return Object.fromEntries([...found].sort().map((name) => [name, defs[name] ?? {}]))
}

function refsIn(value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap(refsIn)
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, child]) =>
    key === '$ref' && typeof child === 'string' ? [refName(child)] : refsIn(child),
  )
}

function sourceFiles(root: string): string[] {
  return ['kinds', 'common', 'runtime'].flatMap((dir) =>
    readdirSync(join(root, dir))
      .filter((name) => name.endsWith('.json'))
      .sort()
      .map((name) => join(root, dir, name)),
  )
}

function add(raw: Map<string, Schema>, name: string, schema: Schema, where: string): void {
  if (raw.has(name)) throw new Error(`${where}: the definition ${name} exists twice`)
  raw.set(name, schema)
}

function kindInfo(source: Source, info: KindSource): KindInfo {
  const kind = source.title ?? ''
  return {
    kind,
    plural: info.plural,
    singular: kind.toLowerCase(),
    listKind: `${kind}List`,
    shortNames: info.shortNames,
    description: source.description ?? '',
    scale: info.scale ?? false,
    columns: info.columns,
    ...(info.examples ? { examples: info.examples } : {}),
  }
}

/**
 * Returns the document that contains the spec and the status. The spec itself is optional when it has no required
 * fields.
 */
function envelope(kind: KindInfo, raw: ReadonlyMap<string, Schema>): Schema {
  const spec = raw.get(`${kind.kind}Spec`)
  const optionalSpec = spec !== undefined && (target(spec, raw).required ?? []).length === 0
  return {
    description: kind.description,
    type: 'object',
    required: ['apiVersion', 'kind', 'metadata', 'spec'],
    additionalProperties: false,
    properties: {
      apiVersion: { type: 'string', enum: [apiVersion] },
      kind: { type: 'string', enum: [kind.kind] },
      metadata: { $ref: '#/$defs/ObjectMeta' },
      spec: { $ref: `#/$defs/${kind.kind}Spec`, ...(optionalSpec ? { default: {} } : {}) },
      status: { $ref: `#/$defs/${kind.kind}Status` },
    },
  }
}

export function refName(ref: string): string {
  return ref.slice(ref.lastIndexOf('/') + 1)
}

/** Follows references inside the bundle. Annotations next to a `$ref` take precedence. */
export function inlined(reference: Schema, bundle: Bundle): Schema {
  let schema = reference
  while (schema.$ref !== undefined) {
    const { $ref, ...siblings } = schema
    schema = { ...bundle.defs[refName($ref)], ...siblings }
  }
  return schema
}

/** Follows references in the sources to the definition, and applies each reference's extensions. */
function target(schema: Schema, defs: ReadonlyMap<string, Schema>): Schema {
  let current = schema
  while (current.$ref !== undefined) {
    const next = defs.get(refName(current.$ref))
    if (!next) throw new Error(`unresolved reference ${current.$ref}`)
    current = Object.keys(current).every((key) => annotations.has(key)) ? next : extend(next, current)
  }
  return current
}

/** Returns the definition that a `$ref` with additional keywords describes. */
function extend(base: Schema, extension: Schema): Schema {
  const { $ref: _, ...rest } = extension
  const properties: Record<string, Schema> = { ...base.properties }
  for (const [name, schema] of Object.entries(rest.properties ?? {})) {
    properties[name] = { ...properties[name], ...schema }
  }
  return {
    ...base,
    ...rest,
    ...(base.properties || rest.properties ? { properties } : {}),
    ...(base.required || rest.required
      ? { required: [...(base.required ?? []), ...(rest.required ?? [])] }
      : {}),
    ...(base['x-kubernetes-validations'] || rest['x-kubernetes-validations']
      ? {
          'x-kubernetes-validations': [
            ...(base['x-kubernetes-validations'] ?? []),
            ...(rest['x-kubernetes-validations'] ?? []),
          ],
        }
      : {}),
  }
}

function settle(
  schema: Schema,
  raw: ReadonlyMap<string, Schema>,
  defs: Record<string, Schema>,
  at: string,
): Schema {
  if (schema.$ref !== undefined) {
    const keys = Object.keys(schema)
    if (!raw.has(refName(schema.$ref))) throw new Error(`${at}: unresolved reference ${schema.$ref}`)
    if (keys.every((key) => annotations.has(key)))
      return { ...schema, $ref: `#/$defs/${refName(schema.$ref)}` }
    return settle(target(schema, raw), raw, defs, at)
  }
  if (
    schema.properties &&
    schema.additionalProperties !== false &&
    !schema['x-kubernetes-preserve-unknown-fields']
  ) {
    throw new Error(`${at}: an object must have "additionalProperties": false`)
  }
  const { title, ...rest } = schema
  const settled: Schema = {
    ...rest,
    ...(rest.properties
      ? {
          properties: Object.fromEntries(
            Object.entries(rest.properties).map(([name, child]) => [
              name,
              settle(child, raw, defs, `${at}.${name}`),
            ]),
          ),
        }
      : {}),
    ...(rest.items ? { items: settle(rest.items, raw, defs, `${at}[]`) } : {}),
    ...(typeof rest.additionalProperties === 'object'
      ? { additionalProperties: settle(rest.additionalProperties, raw, defs, `${at}{}`) }
      : {}),
  }
  if (title === undefined) return settled
  if (defs[title] || raw.has(title)) throw new Error(`${at}: the definition ${title} exists twice`)
  const { description, default: fallback, ...definition } = settled
  defs[title] = { ...(description === undefined ? {} : { description }), ...definition }
  return {
    $ref: `#/$defs/${title}`,
    ...(description === undefined ? {} : { description }),
    ...(fallback === undefined ? {} : { default: fallback }),
  }
}
