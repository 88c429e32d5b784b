/**
 * The strict YAML reader for configuration files and manifests. The reader also accepts JSON, which is a subset of
 * YAML.
 *
 * Accepts YAML 1.2 with values that JSON can represent. The reader interprets plain scalars and merge keys (`<<`) as
 * kubectl does, so a document has the same meaning here and in a cluster. For example, `yes` and `on` are true, and
 * `0644` is octal. Files from other programs are read as plain YAML 1.2.
 *
 * Rejects syntax errors, repeated keys, tags for other types, other YAML versions and nodes that contain themselves.
 * Also rejects keys that are not plain values or are integers that a double would round, and documents that are too
 * large or too deep, or that expand too much through aliases. Errors contain the line number. The library checks
 * repeated keys in quadratic time and writes collection keys in exponential time. This module therefore checks all keys
 * before it builds a value.
 * Source: YAML 1.2.2.
 */
import { exactInteger, isRawJson } from '../json/exact-json.ts'
import type { Violation } from '../validation/violations.ts'
import {
  type Alias,
  type Document,
  isAlias,
  isCollection,
  isMap,
  isPair,
  isScalar,
  isSeq,
  LineCounter,
  parseAllDocuments,
  type Scalar,
  type ScalarTag,
  type Tags,
} from 'yaml'

const radixes: Readonly<Record<string, number>> = { o: 8, X: 16, B: 2 }

/** Matches `0o17`, `0X1F` and `0B1`, which kubectl also reads as integers. */
export const otherIntegers: ScalarTag = {
  tag: 'tag:yaml.org,2002:int',
  default: true,
  test: /^[-+]?0(?:o[0-7]+|X[\da-fA-F]+|B[01]+)$/,
  resolve(text) {
    const [, sign, letter = '', digits = ''] = /^([-+]?)0(.)(.+)$/.exec(text) ?? []
    return (sign === '-' ? -1 : 1) * Number.parseInt(digits, radixes[letter])
  },
}

/** A violation whose path is `line <number>`. */
export interface YamlViolation extends Violation {
  /** One-based line number. */
  readonly line: number
}

export interface YamlDocument {
  /** Value of the document; null for an empty document. */
  readonly value: unknown
  /** One-based line of the document's first key. */
  readonly line: number
  /**
   * Returns the one-based line of the value at these keys and indexes, or that of the nearest existing part of the
   * path.
   */
  readonly lineOf: (steps: readonly (string | number)[]) => number
}

export interface YamlRead {
  /** The documents; empty when there are errors. */
  readonly documents: readonly YamlDocument[]
  readonly violations: readonly YamlViolation[]
}

/** Maximum size: several times the maximum size of a ConfigMap or any other API server object. */
const maxBytes = 8 * 1024 * 1024
/** Maximum depth, far deeper than any manifest. */
const maxDepth = 100
/** Maximum number of nodes that aliases may add to a document. */
const maxAliased = 100_000
const maxViolations = 20

/** YAML 1.1 types that kubectl does not detect in plain scalars. */
const unsupportedByKubectl = /:(?:binary|omap|pairs|set|timestamp)$/

const kubectlScalars = {
  schema: 'yaml-1.1',
  customTags: (tags: Tags): Tags => [
    ...tags.filter(
      (tag) =>
        typeof tag === 'object' &&
        !unsupportedByKubectl.test(tag.tag) &&
        !('format' in tag && tag.format === 'TIME'),
    ),
    otherIntegers,
  ],
} as const

/** Reads all documents in a YAML text. Never throws. */
export function readYaml(text: string): YamlRead {
  const lines = new LineCounter()
  const { documents, violations } = readYamlTree(text, { lines, kubectl: true })
  return { documents: documents.map((document) => documentOf(document, lines)), violations }
}

/**
 * Like `readYaml`, but returns nodes with their offsets, for edits that keep the rest of the file unchanged. Interprets
 * plain scalars as YAML 1.2 unless `kubectl` is true. Never throws.
 */
export function readYamlTree(
  text: string,
  {
    lines = new LineCounter(),
    kubectl = false,
  }: { readonly lines?: LineCounter; readonly kubectl?: boolean } = {},
): { readonly documents: readonly Document[]; readonly violations: readonly YamlViolation[] } {
  if (Buffer.byteLength(text) > maxBytes) {
    return {
      documents: [],
      violations: [violationAt(1, `is larger than ${maxBytes / 1024 / 1024} MiB`)],
    }
  }
  const parsed = parseAllDocuments(text, {
    lineCounter: lines,
    uniqueKeys: false,
    strict: true,
    prettyErrors: false,
    resolveKnownTags: false,
    ...(kubectl && kubectlScalars),
  })
  const documents: readonly Document[] = Array.isArray(parsed) ? parsed : []
  const violations = documents.flatMap((document) => violationsOf(document, lines))
  if (violations.length > 0) return { documents: [], violations: violations.slice(0, maxViolations) }
  return { documents, violations: [] }
}

function violationAt(line: number, message: string): YamlViolation {
  return { path: `line ${line}`, line, message }
}

function violationsOf(document: Document, lines: LineCounter): YamlViolation[] {
  const syntax = [...document.errors, ...document.warnings].map(({ message, pos }) =>
    violationAt(lines.linePos(pos[0]).line, message.startsWith('Maximum call stack') ? tooDeep : message),
  )
  if (syntax.length > 0) return syntax
  const { version } = document.directives?.yaml ?? {}
  if (version !== undefined && version !== '1.2') return [violationAt(1, `is YAML ${version}, not 1.2`)]
  const walk = new Walk(lines)
  walk.visit(document.contents, 0)
  return walk.violations
}

const tooDeep = `is nested more than ${maxDepth} levels deep`

/** Visits every value of a document, including aliases. */
class Walk {
  readonly violations: YamlViolation[] = []
  readonly #lines: LineCounter
  readonly #anchors = new Map<string, unknown>()
  /** Ancestors of the current node. */
  readonly #open = new Set<unknown>()
  #aliasDepth = 0
  #aliased = 0

  constructor(lines: LineCounter) {
    this.#lines = lines
  }

  visit(node: unknown, depth: number): void {
    if (this.violations.length >= maxViolations) return
    if (this.#aliasDepth > 0 && ++this.#aliased > maxAliased) {
      if (this.#aliased === maxAliased + 1) this.#failure(node, 'expands to too many nodes through aliases')
      return
    }
    if (isAlias(node)) this.#alias(node, depth)
    else if (isCollection(node)) {
      if (node.anchor !== undefined) this.#anchors.set(node.anchor, node)
      if (depth >= maxDepth) this.#failure(node, tooDeep)
      else this.#collection(node, depth)
    } else if (isScalar(node)) {
      if (node.anchor !== undefined) this.#anchors.set(node.anchor, node)
      node.value = exactValue(node)
    }
  }

  #alias(alias: Alias, depth: number): void {
    const target = this.#anchors.get(alias.source)
    if (target === undefined) this.#failure(alias, `the alias *${alias.source} has no anchor before it`)
    else if (this.#open.has(target))
      this.#failure(alias, `the alias *${alias.source} refers to a node that contains it`)
    else {
      this.#aliasDepth += 1
      this.visit(target, depth)
      this.#aliasDepth -= 1
    }
  }

  #collection(node: { readonly items: readonly unknown[] }, depth: number): void {
    this.#open.add(node)
    const keys = new Set<string>()
    for (const item of node.items) {
      if (!isPair(item)) this.visit(item, depth + 1)
      else {
        if (isMergeKey(item.key)) this.#merge(item.value, item === node.items[0])
        else this.#key(item.key, keys)
        this.visit(item.value, depth + 1)
      }
    }
    this.#open.delete(node)
  }

  /**
   * Visits the value of `<<`: a map or a list of maps. The members of these maps apply if the document does not define
   * a member with the same name.
   */
  #merge(value: unknown, first: boolean): void {
    if (!first)
      return this.#failure(
        value,
        'a merge key (<<) must be the first key: kubectl replaces the keys before it',
      )
    const target = (node: unknown): unknown => (isAlias(node) ? this.#anchors.get(node.source) : node)
    const whole = target(value)
    const sources = isSeq(whole) ? whole.items.map(target) : [whole]
    if (!sources.every(isMap)) this.#failure(value, 'a merge key (<<) requires a map, or a list of maps')
  }

  #key(key: unknown, seen: Set<string>): void {
    if (!isScalar(key) || !isPlain(key.value)) return this.#failure(key, 'a key must be a plain value')
    if (key.anchor !== undefined) this.#anchors.set(key.anchor, key)
    const name = String(key.value)
    if (isRawJson(exactValue(key)))
      this.#failure(key, `the key ${key.source} would lose digits; put it in quotes`)
    if (typeof key.value === 'boolean' && key.source !== undefined && key.source.toLowerCase() !== name)
      this.#failure(key, `the key ${key.source} is read as ${name} by kubectl; put it in quotes`)
    if (seen.has(name)) this.#failure(key, `the key ${JSON.stringify(name.slice(0, 80))} is repeated`)
    seen.add(name)
  }

  #failure(node: unknown, message: string): void {
    this.violations.push(violationAt(this.#lines.linePos(offsetOf(node) ?? 0).line, message))
  }
}

/** Returns the value of a scalar; raw JSON when it is an integer that a double would round. */
function exactValue({ value, source }: Scalar): unknown {
  if (typeof value !== 'number' || Number.isSafeInteger(value) || source === undefined) return value
  const digits = decimalDigits(source)
  return digits === undefined ? value : exactInteger(value, digits)
}

/** Returns the decimal form of an integer in YAML 1.1 or 1.2 notation; undefined for other numbers. */
function decimalDigits(source: string): string | undefined {
  const [, sign, digits = ''] = /^([-+]?)(\w+)$/.exec(source.replaceAll('_', '')) ?? []
  const octal = /^0o?(?=[0-7]+$)/.exec(digits)
  const text = octal ? `0o${digits.slice(octal[0].length)}` : digits.toLowerCase()
  if (!/^(?:\d+|0x[\da-f]+|0o[0-7]+|0b[01]+)$/.test(text)) return undefined
  return `${sign === '-' ? '-' : ''}${BigInt(text)}`
}

/** The parser represents a merge key (`<<`) as a symbol. */
function isMergeKey(key: unknown): boolean {
  return isScalar(key) && typeof key.value === 'symbol'
}

function isPlain(value: unknown): value is string | number | boolean {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
}

function documentOf(document: Document, lines: LineCounter): YamlDocument {
  const line = lines.linePos(document.contents?.range?.[0] ?? 0).line
  return {
    // Removes the library's limit on aliases, because the walk has already bounded their expansion.
    value: document.toJS({ maxAliasCount: -1 }),
    line,
    lineOf(steps) {
      for (let length = steps.length; length > 0; length--) {
        const offset = offsetOf(document.getIn(steps.slice(0, length), true))
        if (offset !== undefined) return lines.linePos(offset).line
      }
      return line
    },
  }
}

/** Returns the offset where a node starts. A map starts with its first key. */
function offsetOf(node: unknown): number | undefined {
  if (typeof node !== 'object' || node === null) return undefined
  const { range }: { range?: readonly number[] | null } = node
  if (isMap(node) && node.items.length > 0) return offsetOf(node.items[0]?.key) ?? range?.[0]
  return range?.[0]
}
