/**
 * Makes a change in the text of a file with manifests, and proves that nothing else of it changed.
 *
 * Only the document with the lock is written again, in the form that `gatehouse lock` writes; comments in it stay. The
 * outcome is read again: it must hold the same documents but for the change, else the edit is refused. Pure.
 */
import { quotedForKubectl } from '../../../../schemas/yaml/index.ts'
import { isDeepStrictEqual } from 'node:util'
import { Document, isMap, isNode, isSeq } from 'yaml'
import { GatehouseError, hiddenInText, isFields } from '../../../../schemas/index.ts'
import { readYaml, readYamlTree } from '../../../config/index.ts'
import { yamlText } from '../manifest.ts'
import { type Change, changed, type Steps } from './change.ts'

/** Where a manifest stands: which document of the file, and the way to it in a `kind: List`. */
export interface Place {
  readonly document: number
  readonly path: Steps
  readonly manifest: Readonly<Record<string, unknown>>
}

/** The manifests of a file that fit. Throws LOCK_NOT_WRITTEN for a file that is not valid YAML. */
export function placesIn(
  text: string,
  fits: (manifest: Readonly<Record<string, unknown>>) => boolean,
): readonly Place[] {
  const { documents, violations } = readYaml(text)
  const [failure] = violations
  if (failure) throw notWritten(`line ${failure.line} of it is not valid YAML: ${failure.message}`)
  return documents.flatMap(({ value }, document) =>
    manifestsIn(value).flatMap(([path, manifest]) => (fits(manifest) ? [{ document, path, manifest }] : [])),
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

/** The text of the file after the change. Throws LOCK_NOT_WRITTEN when that is not safe. */
export function edited(file: string, text: string, place: Place, change: Change): string {
  const whole = { ...change, path: [...place.path, ...change.path] }
  const before = valuesOf(text)
  const wanted = before.map((value, at) => (at === place.document ? changed(value, whole) : value))
  const next = file.endsWith('.json')
    ? jsonText(wanted[place.document])
    : yamlEdited(text, place.document, whole)
  if (!isDeepStrictEqual(valuesOf(next), wanted)) throw byHand()
  return next
}

function valuesOf(text: string): readonly unknown[] {
  const { documents, violations } = readYaml(text)
  if (violations.length > 0) throw byHand()
  return documents.map(({ value }) => value)
}

/** Characters that an editor would not show are escapes. */
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
  if (!document || !isNode(contents) || !range || !contents.range) throw byHand()
  const [start, end] = contents.range
  try {
    apply(document, change)
    const alone = new Document(null, quotedForKubectl)
    alone.contents = contents
    // What stands before it is outside of its range.
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
    // The library refuses what it cannot write, such as an alias whose anchor is gone.
    if (error instanceof GatehouseError) throw error
    throw byHand()
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

const order = ['server', 'tools', 'prompts', 'resourceTemplates']

/** `gatehouse lock` writes these in their order, after all else. */
function laterMembers(name: string): readonly string[] {
  const at = order.indexOf(name)
  return at < 0 ? [] : order.slice(at + 1)
}

function byHand(): GatehouseError {
  return notWritten(
    'its file is written in a way that cannot be edited safely, with anchors perhaps: edit it by hand, or write it again with gatehouse lock',
  )
}

export function notWritten(detail: string): GatehouseError {
  return new GatehouseError('LOCK_NOT_WRITTEN', { detail })
}
