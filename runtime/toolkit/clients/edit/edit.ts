/**
 * Sets or removes one entry of a client's file and proves that nothing else changed.
 *
 * The text is spliced at the entry's own range. The outcome is parsed again: it must equal the document before but for
 * the entry, else the edit is refused. Pure: reads and writes no file.
 */
import { isFields } from '../../../../schemas/index.ts'
import { isDeepStrictEqual } from 'node:util'
import { type Format, parseDocument } from '../document/document.ts'
import { refusedFile } from '../document/text.ts'
import { applyChanges, type TextChange } from './changes.ts'
import { dropJson, putJson } from './json.ts'
import { dropToml, putToml } from './toml.ts'
import { dropYaml, putYaml } from './yaml.ts'

/** A file's text, and where in it the entry stands. */
export interface EditTarget {
  readonly format: Format
  readonly text: string
  /** Names from the top of the document to the entry. */
  readonly path: readonly string[]
  /** For messages. */
  readonly file: string
}

export interface Edit {
  /** In the order of the text; none when there was nothing to do. */
  readonly changes: readonly TextChange[]
  readonly text: string
}

type Entry = Readonly<Record<string, unknown>>

/** Sets the entry; one that is there is replaced where it stands. Throws INVALID_CONFIG when that is not safe. */
export function putEntry(target: EditTarget, entry: Entry): Edit {
  const { format, text, path, file } = target
  const before = parseDocument(format, text, file)
  const changes = {
    json: () => putJson(text, path, entry, file),
    toml: () => putToml(text, path, entry, file),
    yaml: () => putYaml(text, path, entry, file),
  }[format]()
  return checked(target, changes, withEntry(before, path, entry))
}

/**
 * Removes the entry, and the empty maps that are left on the way to it when `emptied` says how many of them were made
 * for it.
 */
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
  return checked(target, changes, without)
}

/** The value at a path of a parsed document; undefined when there is none. */
export function entryAt(document: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>(
    (at, name) => (isFields(at) && Object.hasOwn(at, name) ? at[name] : undefined),
    document,
  )
}

function checked(
  { format, text, path, file }: EditTarget,
  changes: readonly TextChange[],
  wanted: unknown,
): Edit {
  const edited = applyChanges(text, changes)
  const found = parseDocument(format, edited, file)
  if (!isDeepStrictEqual(withoutEmptyMaps(found, path), withoutEmptyMaps(wanted, path))) {
    throw refusedFile(
      file,
      'cannot be edited without changing something else in it; add the entry by hand (--print)',
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
    const { [name]: _removed, ...others } = document
    return others
  }
  return { ...document, [name]: withoutEntry(document[name], rest) }
}

/** A map without members and no map are one to every client: those on the way to the entry do not count. */
function withoutEmptyMaps(document: unknown, path: readonly string[]): unknown {
  let left = plain(document)
  for (let depth = path.length - 1; depth > 0; depth--) {
    const parents = path.slice(0, depth)
    const map = entryAt(left, parents)
    const isEmpty = map === null || (isFields(map) && Object.keys(map).length === 0)
    if (isEmpty) left = withoutEntry(left, parents)
  }
  return left
}

/** Copies maps into ordinary objects, so that two parsers' kinds of objects compare as equal. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain)
  if (!isFields(value) || value instanceof Date) return value
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, plain(member)]))
}
