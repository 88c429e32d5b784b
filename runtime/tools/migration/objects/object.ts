/** Converts a toolhive.stacklok.dev object and validates it with the admission webhook's code. */
import { apiVersion, type Fields, fieldsOf, isFields, type Violation } from '../../../../schemas/index.ts'
import { MigrationDraft, type Mutable, type ObjectContext } from './draft.ts'
import { kindRules } from './kinds.ts'
import { convertMetadata } from './metadata.ts'

/** Fields for which null is a valid value. Elsewhere, null means unset, as in the API server. */
const freeForm: ReadonlySet<string> = new Set([
  'arguments',
  'defaultResults',
  'default',
  'parameters',
  'schema',
  'podTemplateSpec',
])

/** Maximum number of rounds that remove unknown fields. Greater than the nesting depth of any document. */
const maxRounds = 20

/** Returns the draft. Either the document is valid, or one of its rows is `refused`. */
export function convertObject(source: Fields, context: ObjectContext): MigrationDraft {
  const draft = new MigrationDraft(source)
  draft.doc['apiVersion'] = apiVersion
  convertMetadata(draft)
  draft.doc['spec'] = withoutNulls(draft.doc['spec'])
  const rules = kindRules[String(source['kind'])]
  rules?.(draft, context)
  settle(draft, context)
  return draft
}

/** Removes unknown fields, then reports remaining violations as refused. */
export function settle(draft: MigrationDraft, { violationsOf }: Pick<ObjectContext, 'violationsOf'>): void {
  if (draft.rows.some(({ effect }) => effect === 'refused')) return
  for (let round = 0; round < maxRounds; round++) {
    const unknown = violationsOf(draft.doc).filter(isUnknown)
    if (unknown.length === 0) break
    for (const { path, message } of unknown) {
      const spelling = otherSpelling(path, message)
      replaceAt(draft.doc, path, spelling)
      if (spelling === undefined) draft.note(path, 'lost', `${message.replace(/;.*$/, '')}: it was removed`)
      else draft.note(path, 'renamed', `is now ${spelling}`)
    }
  }
  for (const { path, message } of violationsOf(draft.doc)) draft.note(path, 'refused', message)
}

function isUnknown({ message }: Violation): boolean {
  return message.startsWith('unknown field')
}

/** Returns the known name that differs only in case, if any. */
function otherSpelling(path: string, message: string): string | undefined {
  const [, guess] = /did you mean "([^"]+)"/.exec(message) ?? []
  return guess !== undefined && path.toLowerCase().endsWith(`.${guess.toLowerCase()}`) ? guess : undefined
}

/** Removes a field, or renames it unless the new name is in use. */
function replaceAt(doc: Mutable, path: string, name: string | undefined): void {
  const steps = [...path.matchAll(/\["((?:[^"\\]|\\.)*)"\]|\[(\d+)\]|([^.[\]]+)/g)].map(
    ([, quoted, index, name]) => quoted ?? name ?? Number(index),
  )
  const last = steps.pop()
  const parent = steps.reduce<unknown>(
    (value, step) =>
      Array.isArray(value) ? (value as unknown[])[Number(step)] : fieldsOf(value)[String(step)],
    doc,
  )
  if (!isFields(parent)) return
  const fields = parent as Mutable
  const value = fields[String(last)]
  delete fields[String(last)]
  if (name !== undefined) fields[name] ??= value
}

function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls)
  if (!isFields(value)) return value
  return Object.fromEntries(
    Object.entries(value)
      .filter(([key, inner]) => inner !== null || freeForm.has(key))
      .map(([key, inner]) => [key, freeForm.has(key) ? inner : withoutNulls(inner)]),
  )
}
