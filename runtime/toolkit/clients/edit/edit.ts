/**
 * Sets or removes one entry in a client's file and verifies that nothing else changed.
 *
 * Splices the text at the entry, then parses the result. The result must equal the original document except for the
 * entry; otherwise the edit is rejected. Pure: does not read or write any file.
 */
import { isFields } from '../../../../schemas/index.ts'
import { isDeepStrictEqual } from 'node:util'
import { type Format, parseDocument } from '../document/document.ts'
import { refusedFile } from '../document/text.ts'
import { applyChanges, type TextChange } from './changes.ts'
import { dropJson, putJson } from './json.ts'
import { dropToml, putToml } from './toml.ts'
import { dropYaml, putYaml } from './yaml.ts'

/** A file's text, and the entry's position in it. */
export interface EditTarget {
  readonly format: Format
  readonly text: string
  /** Keys from the top of the document to the entry. */
  readonly path: readonly string[]
  /** Path of the file, as shown in messages. */
  readonly file: string
}

export interface Edit {
  /** The changes, in text order. Empty when the file needs no change. */
  readonly changes: readonly TextChange[]
  readonly text: string
}

type Entry = Readonly<Record<string, unknown>>

/** Sets the entry, replacing it in place if it exists. Throws INVALID_CONFIG when the edit is not safe. */
export function putEntry(target: EditTarget, entry: Entry): Edit {
  const { format, text, path, file } = target
  const before = parseDocument(format, text, file)
  const changes = {
    json: () => putJson(text, path, entry, file),
    toml: () => putToml(text, path, entry, file),
    yaml: () => putYaml(text, path, entry, file),
  }[format]()
  return verifyEdit(target, changes, withEntry(before, path, entry))
}

/** Removes the entry. Also removes up to `emptied` empty parent maps that were created for the entry. */
export function dropEntry(target: EditTarget, emptied = 0): Edit {
  const { format, text, path, file } = target
  const before = parseDocument(format, text, file)
  if (entryAt(before, path) === undefined) return { changes: [], text }
  const without = withoutEntry(before, path)
  const parents = path.slice(0, -1)
  const isEmpty =
    isFields(entryAt(without, parents)) && Object.keys(entryAt(without, parents) ?? {}).length === 0
  if (emptied > 0 && parents.length > 0 && isEmpty) {
    return dropEntry({ ...target, path: parents }, emptied - 1)
  }
  const changes = {
    json: () => dropJson(text, path, file),
    toml: () => dropToml(text, path, file),
    yaml: () => dropYaml(text, path, file),
  }[format]()
  return verifyEdit(target, changes, without)
}

/** Returns the value at a path in a parsed document, or undefined. */
export function entryAt(document: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>(
    (at, name) => (isFields(at) && Object.hasOwn(at, name) ? at[name] : undefined),
    document,
  )
}

function verifyEdit(
  { format, text, path, file }: EditTarget,
  changes: readonly TextChange[],
  expected: unknown,
): Edit {
  const edited = applyChanges(text, changes)
  const found = parseDocument(format, edited, file)
  if (!isDeepStrictEqual(withoutEmptyMaps(found, path), withoutEmptyMaps(expected, path))) {
    throw refusedFile(
      file,
      'cannot be edited without changing other parts of the file; add the entry manually (--print)',
    )
  }
  return { changes, text: edited }
}

function withEntry(document: unknown, path: readonly string[], entry: unknown): unknown {
  const [name, ...rest] = path
  if (name === undefined) return entry
  const members = isFields(document) ? document : {}
  return {
    ...members,
    [name]: withEntry(Object.hasOwn(members, name) ? members[name] : undefined, rest, entry),
  }
}

function withoutEntry(document: unknown, path: readonly string[]): unknown {
  const [name = '', ...rest] = path
  if (!isFields(document)) return document
  if (rest.length === 0) {
    const { [name]: _removed, ...remaining } = document
    return remaining
  }
  return { ...document, [name]: withoutEntry(document[name], rest) }
}

/** Removes empty maps on the path to the entry, because clients treat an empty map as missing. */
function withoutEmptyMaps(document: unknown, path: readonly string[]): unknown {
  let result = plain(document)
  for (let depth = path.length - 1; depth > 0; depth--) {
    const parents = path.slice(0, depth)
    const map = entryAt(result, parents)
    const isEmpty = map === null || (isFields(map) && Object.keys(map).length === 0)
    if (isEmpty) result = withoutEntry(result, parents)
  }
  return result
}

/** Copies maps to plain objects, so that the results of different parsers compare as equal. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain)
  if (!isFields(value) || value instanceof Date) return value
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, plain(member)]))
}
