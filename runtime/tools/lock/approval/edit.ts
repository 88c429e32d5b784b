/**
 * Applies a change to a manifest file's text and verifies that nothing else changed.
 *
 * Rewrites only the document that contains the lock, in the format of `gatehouse lock`, and keeps its comments. The
 * result must parse to the same documents except for the change; otherwise the edit is rejected. Pure.
 */
import { quotedForKubectl } from '../../../../schemas/yaml/index.ts'
import { isDeepStrictEqual } from 'node:util'
import { Document, isMap, isNode, isSeq } from 'yaml'
import { GatehouseError, hiddenInText, isFields } from '../../../../schemas/index.ts'
import { readYaml, readYamlTree } from '../../../config/index.ts'
import { yamlText } from '../manifest.ts'
import { type Change, applyChange, type Steps } from './change.ts'

/** A manifest's position: its document in the file, and its path in a `kind: List`. */
export interface ManifestPosition {
  readonly document: number
  readonly path: Steps
  readonly manifest: Readonly<Record<string, unknown>>
}

/** Returns the matching manifests of a file. Throws LOCK_NOT_WRITTEN when the file is not valid YAML. */
export function findManifests(
  text: string,
  matches: (manifest: Readonly<Record<string, unknown>>) => boolean,
): readonly ManifestPosition[] {
  const { documents, violations } = readYaml(text)
  const [failure] = violations
  if (failure) throw notWritten(`line ${failure.line} of its file is not valid YAML: ${failure.message}`)
  return documents.flatMap(({ value }, document) =>
    manifestsIn(value).flatMap(([path, manifest]) =>
      matches(manifest) ? [{ document, path, manifest }] : [],
    ),
  )
}

function manifestsIn(value: unknown): [Steps, Readonly<Record<string, unknown>>][] {
  if (!isFields(value)) return []
  const { kind, items } = value
  if (kind !== 'List' || !Array.isArray(items)) return [[[], value]]
  return items.flatMap((item: unknown, at): [Steps, Readonly<Record<string, unknown>>][] =>
    isFields(item) ? [[['items', at], item]] : [],
  )
}

/** Returns the file's text after the change. Throws LOCK_NOT_WRITTEN when the edit is not safe. */
export function editText(file: string, text: string, position: ManifestPosition, change: Change): string {
  const whole = { ...change, path: [...position.path, ...change.path] }
  const before = valuesOf(text)
  const expected = before.map((value, at) => (at === position.document ? applyChange(value, whole) : value))
  const next = file.endsWith('.json')
    ? jsonText(expected[position.document])
    : yamlEdited(text, position.document, whole)
  if (!isDeepStrictEqual(valuesOf(next), expected)) throw mustEditByHand()
  return next
}

function valuesOf(text: string): readonly unknown[] {
  const { documents, violations } = readYaml(text)
  if (violations.length > 0) throw mustEditByHand()
  return documents.map(({ value }) => value)
}

/** Escapes characters that an editor would not show. */
function jsonText(value: unknown): string {
  const text = JSON.stringify(value, undefined, 2)
  const escaped = (found: string): string =>
    [...Array(found.length).keys()]
      .map((at) => `\\u${found.charCodeAt(at).toString(16).padStart(4, '0')}`)
      .join('')
  return `${text.replace(hiddenInText, escaped)}\n`
}

function yamlEdited(text: string, at: number, change: Change): string {
  const document = readYamlTree(text).documents[at]
  const { contents, range } = document ?? {}
  if (!document || !isNode(contents) || !range || !contents.range) throw mustEditByHand()
  const [start, end] = contents.range
  try {
    apply(document, change)
    const alone = new Document(null, quotedForKubectl)
    alone.contents = contents
    // Comments before the contents are outside the document's range.
    contents.commentBefore = null
    const first = isMap(contents) ? contents.items[0]?.key : undefined
    if (isNode(first) && first.range?.[0] === start) first.commentBefore = null
    const body = yamlText(alone)
    const own = text.slice(start, end)
    const next = own.endsWith('\n') ? body : body.replace(/\n$/, '')
    return (
      text.slice(0, start) + (own.includes('\r\n') ? next.replaceAll('\n', '\r\n') : next) + text.slice(end)
    )
  } catch (error) {
    // The library throws when it cannot write the document, for example because an alias no longer has its anchor.
    if (error instanceof GatehouseError) throw error
    throw mustEditByHand()
  }
}

function apply(document: Document, change: Change): void {
  const { path } = change
  const last = path.at(-1)
  const parent = document.getIn(path.slice(0, -1), true)
  if (change.do === 'remove') {
    document.deleteIn(path)
    return
  }
  const node = document.createNode(change.value, { aliasDuplicateObjects: false })
  if (isSeq(parent) && typeof last === 'number') {
    const old = change.do === 'set' ? parent.items[last] : undefined
    if (isNode(old)) Object.assign(node, { commentBefore: old.commentBefore, spaceBefore: old.spaceBefore })
    parent.items.splice(last, change.do === 'set' ? 1 : 0, node)
  } else if (isMap(parent) && !parent.has(last) && typeof last === 'string') {
    const pair = document.createPair(last, change.value, { aliasDuplicateObjects: false })
    const names = parent.items.map(({ key }) => String(key))
    const later = laterMembers(last)
    const next = names.findIndex((name) => later.includes(name))
    parent.items.splice(next < 0 ? names.length : next, 0, pair)
  } else document.setIn(path, node)
}

const order = ['server', 'tools', 'prompts', 'resourceTemplates', 'skills']

/** Returns the members that `gatehouse lock` writes after this member. */
function laterMembers(name: string): readonly string[] {
  const at = order.indexOf(name)
  return at < 0 ? [] : order.slice(at + 1)
}

function mustEditByHand(): GatehouseError {
  return notWritten(
    'its file cannot be edited safely, for example because it contains anchors: edit it manually, or rewrite it with gatehouse lock',
  )
}

export function notWritten(detail: string): GatehouseError {
  return new GatehouseError('LOCK_NOT_WRITTEN', { detail })
}
