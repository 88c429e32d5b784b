/**
 * Writes self-contained JSON Schemas for editors and other tools, in draft 7, which all of them support.
 *
 * JSON Schema cannot express rules across fields (CEL); `gatehouse validate` checks them.
 */
import type { Bundle, Schema } from '../schema.ts'
import { apiVersion } from '../schema.ts'
import { byText } from '../canonical.ts'

type Json = Record<string, unknown>

const draft = 'http://json-schema.org/draft-07/schema#'

/**
 * Returns a map from file names to JSON text: one schema per kind, one for files with several kinds, and one per
 * runtime file.
 */
export function editorSchemas(bundle: Bundle): Map<string, string> {
  const kinds = bundle.kinds.map(({ kind }) => kind)
  const roots: [string, Json, readonly string[]][] = [
    ['manifest', anyKind(kinds), kinds],
    ...bundle.kinds.map(({ kind, singular }): [string, Json, string[]] => [
      singular,
      { allOf: [ref(kind)] },
      [kind],
    ]),
    ...Object.entries(bundle.runtime).map(([name, def]): [string, Json, string[]] => [
      `runtime-${name}`,
      { allOf: [ref(def)] },
      [def],
    ]),
  ]
  return new Map(
    roots.map(([name, root, uses]) => {
      const schema = { $schema: draft, title: `Gatehouse: ${name}`, ...root, definitions: used(uses, bundle) }
      return [`${name}.json`, `${JSON.stringify(schema, undefined, 1)}\n`]
    }),
  )
}

/** Accepts documents from other API groups, such as Secrets, in the same file. */
function anyKind(kinds: readonly string[]): Json {
  return {
    type: 'object',
    allOf: [
      when(
        { properties: { apiVersion: { const: apiVersion } }, required: ['apiVersion'] },
        { required: ['kind', 'metadata'], properties: { kind: { enum: kinds } } },
      ),
      ...kinds.map((kind) =>
        when(
          {
            properties: { apiVersion: { const: apiVersion }, kind: { const: kind } },
            required: ['apiVersion', 'kind'],
          },
          ref(kind),
        ),
      ),
    ],
  }
}

/** Returns an `if`/`then` schema. */
function when(condition: Json, schema: Json): Json {
  return Object.fromEntries([
    ['if', condition],
    // oxlint-disable-next-line unicorn/no-thenable -- a JSON Schema keyword, never awaited
    ['then', schema],
  ])
}

function ref(name: string): Json {
  return { $ref: `#/definitions/${name}` }
}

/** Returns the definitions that `roots` need, sorted by name. */
function used(roots: readonly string[], bundle: Bundle): Json {
  const found = new Map<string, unknown>()
  const visit = (name: string): void => {
    if (found.has(name)) return
    found.set(name, undefined)
    found.set(name, editable(bundle.defs[name] ?? {}, visit))
  }
  for (const root of roots) visit(root)
  return Object.fromEntries([...found].sort(([a], [b]) => byText(a, b)))
}

/** Returns a definition in draft 7. */
function editable(schema: Schema, visit: (name: string) => void): Json {
  const {
    $ref,
    nullable,
    properties,
    items,
    additionalProperties,
    type,
    'x-expects': expects,
    ...rest
  } = schema
  const own = Object.fromEntries(Object.entries(rest).filter(([key]) => !key.startsWith('x-')))
  if ($ref !== undefined) {
    const name = $ref.replace('#/$defs/', '')
    visit(name)
    // Draft 7 ignores keywords next to a `$ref`.
    return { ...own, allOf: [ref(name)] }
  }
  return {
    ...own,
    ...(type === undefined ? {} : { type: nullable ? [type, 'null'] : type }),
    ...(expects === undefined ? {} : { patternErrorMessage: `expected ${expects}` }),
    ...(properties
      ? {
          properties: Object.fromEntries(
            Object.entries(properties).map(([name, child]) => [name, editable(child, visit)]),
          ),
        }
      : {}),
    ...(items ? { items: editable(items, visit) } : {}),
    ...(additionalProperties === undefined
      ? {}
      : {
          additionalProperties:
            typeof additionalProperties === 'object'
              ? editable(additionalProperties, visit)
              : additionalProperties,
        }),
  }
}
