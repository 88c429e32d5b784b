/**
 * A document that is being converted: edits of its fields by path, each with the row that reports it.
 *
 * Paths are those of the source: `spec.steps[].onError.maxRetries` visits every item of a list, `backends{}` every value
 * of a map. A field that is absent is no edit and no row.
 */
import { cloneJson, below, type Fields, isFields, type Violation } from '../../../../schemas/index.ts'
import type { FieldEffect, MigrationRow } from '../row.ts'

/** A document or a part of it, to be changed in place. */
export type Mutable = Record<string, unknown>

/** A field that was found. */
export interface DraftPlace {
  readonly parent: Mutable
  readonly key: string
  readonly value: unknown
  readonly path: string
}

export class MigrationDraft {
  readonly doc: Mutable
  readonly rows: MigrationRow[] = []

  /** Works on a copy. */
  constructor(source: Fields) {
    this.doc = { ...cloneJson(source) }
  }

  note(field: string, effect: FieldEffect, text: string): void {
    this.rows.push({ field, effect, text })
  }

  /** The fields behind a path that exist. */
  places(pattern: string): readonly DraftPlace[] {
    return placesOf(this.doc, pattern.split('.'), '')
  }

  value(pattern: string): unknown {
    return this.places(pattern)[0]?.value
  }

  /** Gives fields another name, in their place; a name that is taken is left alone, and the field lost. */
  rename(pattern: string, name: string): void {
    for (const { parent, key, path } of this.places(pattern)) {
      if (name in parent) {
        delete parent[key]
        this.note(path, 'lost', `${name} is set as well; that one is used`)
        continue
      }
      const entries = Object.entries(parent).map(([field, value]) => [field === key ? name : field, value])
      for (const field of Object.keys(parent)) delete parent[field]
      Object.assign(parent, Object.fromEntries(entries))
      this.note(path, 'renamed', `is ${name}`)
    }
  }

  /** Replaces values that have another name here. */
  revalue(pattern: string, names: Readonly<Record<string, string>>): void {
    for (const { parent, key, value, path } of this.places(pattern)) {
      const name = typeof value === 'string' && Object.hasOwn(names, value) ? names[value] : undefined
      if (name === undefined) continue
      parent[key] = name
      this.note(path, 'renamed', `${JSON.stringify(value)} is ${JSON.stringify(name)}`)
    }
  }

  /** Removes fields; one that only states a default (`false`, empty) is removed without a row. */
  drop(pattern: string, effect: FieldEffect, text: string): void {
    for (const { parent, key, value, path } of this.places(pattern)) {
      delete parent[key]
      if (!isEmpty(value)) this.note(path, effect, text)
    }
  }

  /** Moves a field of `spec` to another place of the document, unless something is there. */
  move(pattern: string, parts: readonly string[]): void {
    const [place] = this.places(pattern)
    if (!place) return
    const target = parts.slice(0, -1).reduce<Mutable>((parent, part) => {
      const next = mutable(parent[part]) ?? {}
      parent[part] = next
      return next
    }, this.doc)
    const name = parts.at(-1) ?? ''
    delete place.parent[place.key]
    if (name in target) this.note(place.path, 'lost', `${parts.join('.')} is set as well; that one is used`)
    else {
      target[name] = place.value
      this.note(place.path, 'renamed', `is ${parts.join('.')}`)
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

function placesOf(value: unknown, steps: readonly string[], path: string): DraftPlace[] {
  const [step = '', ...rest] = steps
  const [, name = step, each] = /^(.*?)(\[\]|\{\})$/.exec(step) ?? []
  const parent = mutable(value)
  if (!parent || !Object.hasOwn(parent, name)) return []
  const found = parent[name]
  const at = below(path, name)
  if (each === undefined) {
    return rest.length === 0 ? [{ parent, key: name, value: found, path: at }] : placesOf(found, rest, at)
  }
  const items: readonly (readonly [string | number, unknown])[] = Array.isArray(found)
    ? found.map((item: unknown, index) => [index, item])
    : Object.entries(mutable(found) ?? {})
  return items.flatMap(([key, item]) => placesOf(item, rest, below(at, key)))
}

export interface MigrationOptions {
  /** What the admission webhook would say of a manifest. */
  readonly violationsOf: (manifest: Fields) => readonly Violation[]
  /** What a step calls its tool, by the name that it has in the source. */
  readonly tools: ReadonlyMap<string, string>
}

export interface ObjectContext extends MigrationOptions {
  /** Adds an object of the same namespace; returns its name, which has a number when the wanted one is taken. */
  readonly add: (kind: string, name: string, body: Fields) => string
  /** Adds an object that several documents want, unless it is there. */
  readonly share: (kind: string, name: string, body: Fields) => void
}
