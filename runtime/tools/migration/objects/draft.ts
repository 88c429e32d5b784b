/**
 * A document that is being converted. Edits fields by path, and records a report row for each edit.
 *
 * Paths refer to the source document. `spec.steps[].onError.maxRetries` visits every item of a list, and `backends{}`
 * visits every value of a map. A missing field produces neither an edit nor a row.
 */
import { cloneJson, below, type Fields, isFields, type Violation } from '../../../../schemas/index.ts'
import type { FieldEffect, MigrationRow } from '../row.ts'

/** A document, or a part of one, that is changed in place. */
export type Mutable = Record<string, unknown>

/** A field that matches a path. */
export interface DraftField {
  readonly parent: Mutable
  readonly key: string
  readonly value: unknown
  readonly path: string
}

export class MigrationDraft {
  readonly doc: Mutable
  readonly rows: MigrationRow[] = []

  /** Works on a copy of `source`. */
  constructor(source: Fields) {
    this.doc = { ...cloneJson(source) }
  }

  note(field: string, effect: FieldEffect, text: string): void {
    this.rows.push({ field, effect, text })
  }

  /** Returns the existing fields that match a path. */
  fieldsAt(pattern: string): readonly DraftField[] {
    return matchFields(this.doc, pattern.split('.'), '')
  }

  value(pattern: string): unknown {
    return this.fieldsAt(pattern)[0]?.value
  }

  /** Renames fields in place. When the new name is in use, the field is dropped and reported as lost. */
  rename(pattern: string, name: string): void {
    for (const { parent, key, path } of this.fieldsAt(pattern)) {
      if (name in parent) {
        delete parent[key]
        this.note(path, 'lost', `${name} is also set, and takes precedence`)
        continue
      }
      const entries = Object.entries(parent).map(([field, value]) => [field === key ? name : field, value])
      for (const field of Object.keys(parent)) delete parent[field]
      Object.assign(parent, Object.fromEntries(entries))
      this.note(path, 'renamed', `is now ${name}`)
    }
  }

  /** Replaces values that have a different name in Gatehouse. */
  revalue(pattern: string, names: Readonly<Record<string, string>>): void {
    for (const { parent, key, value, path } of this.fieldsAt(pattern)) {
      const name = typeof value === 'string' && Object.hasOwn(names, value) ? names[value] : undefined
      if (name === undefined) continue
      parent[key] = name
      this.note(path, 'renamed', `${JSON.stringify(value)} is now ${JSON.stringify(name)}`)
    }
  }

  /** Removes fields. A default value (`false`, empty) is removed without a row. */
  drop(pattern: string, effect: FieldEffect, text: string): void {
    for (const { parent, key, value, path } of this.fieldsAt(pattern)) {
      delete parent[key]
      if (!isEmpty(value)) this.note(path, effect, text)
    }
  }

  /** Moves a field of `spec` within the document, unless the target exists. */
  move(pattern: string, parts: readonly string[]): void {
    const [field] = this.fieldsAt(pattern)
    if (!field) return
    const target = parts.slice(0, -1).reduce<Mutable>((parent, part) => {
      const next = mutable(parent[part]) ?? {}
      parent[part] = next
      return next
    }, this.doc)
    const name = parts.at(-1) ?? ''
    delete field.parent[field.key]
    if (name in target) this.note(field.path, 'lost', `${parts.join('.')} is also set, and takes precedence`)
    else {
      target[name] = field.value
      this.note(field.path, 'renamed', `is now ${parts.join('.')}`)
    }
  }
}

function mutable(value: unknown): Mutable | undefined {
  return isFields(value) ? value : undefined
}

function isEmpty(value: unknown): boolean {
  if (value === false || value === null || value === '' || value === 0) return true
  if (Array.isArray(value)) return value.length === 0
  return isFields(value) && Object.keys(value).length === 0
}

function matchFields(value: unknown, steps: readonly string[], path: string): DraftField[] {
  const [step = '', ...rest] = steps
  const [, name = step, each] = /^(.*?)(\[\]|\{\})$/.exec(step) ?? []
  const parent = mutable(value)
  if (!parent || !Object.hasOwn(parent, name)) return []
  const found = parent[name]
  const at = below(path, name)
  if (each === undefined) {
    return rest.length === 0 ? [{ parent, key: name, value: found, path: at }] : matchFields(found, rest, at)
  }
  const items: readonly (readonly [string | number, unknown])[] = Array.isArray(found)
    ? found.map((item: unknown, index) => [index, item])
    : Object.entries(mutable(found) ?? {})
  return items.flatMap(([key, item]) => matchFields(item, rest, below(at, key)))
}

export interface MigrationOptions {
  /** Returns the violations that the admission webhook would report. */
  readonly violationsOf: (manifest: Fields) => readonly Violation[]
  /** Full tool names for steps, keyed by the name in the source. */
  readonly tools: ReadonlyMap<string, string>
}

export interface ObjectContext extends MigrationOptions {
  /** Adds an object in the same namespace and returns its name. Appends a number when the requested name is in use. */
  readonly add: (kind: string, name: string, body: Fields) => string
  /** Adds an object that several documents need, unless it exists. */
  readonly share: (kind: string, name: string, body: Fields) => void
}
