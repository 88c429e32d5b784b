/**
 * A readable diff of two definitions, with one unified diff for each part. Characters that a terminal or browser would
 * hide are made visible. The diff's size is bounded, regardless of the size of the texts.
 */
import { byText, exactJson, isRawJson } from '../../../../schemas/index.ts'
import { JsonError } from '../../../mcp/index.ts'
import { visibleText } from '../../../observe/index.ts'
import { partsOf } from './digest.ts'
import { type PinnedPart, type PinKind, parts } from '../../model/catalog/pinning.ts'

export interface PartDiff {
  readonly part: PinnedPart
  /**
   * A line starts with a space, `-` (approved) or `+` (offered). A line that starts with `@@` replaces omitted lines.
   */
  readonly lines: readonly string[]
  /** True if the diff is incomplete. */
  readonly cut: boolean
}

/** Limits for one part. */
export interface DiffLimits {
  readonly lines: number
  /** Characters per line. */
  readonly line: number
}

const context = 3
const defaultLimits: DiffLimits = { lines: 400, line: 2_000 }
/**
 * Limits for reviewers. Every part of a listed item fits within these limits, unless the part consists only of short
 * lines.
 */
export const forReview: DiffLimits = { lines: 20_000, line: 400_000 }
/**
 * Maximum number of compared line pairs. In the diff of larger texts, the middle part is shown as completely replaced.
 */
const maxPairs = 1_000_000
const maxWholeLine = 200

/**
 * Returns the parts that differ. An undefined item is missing, so all lines of the other item count as added or
 * removed.
 */
export function pinDiff(
  kind: PinKind,
  approved: string | undefined,
  offered: string | undefined,
  limits: DiffLimits = defaultLimits,
): readonly PartDiff[] {
  const before = textsOf(kind, approved)
  const after = textsOf(kind, offered)
  return parts.flatMap((part) => {
    const own = before.get(part) ?? []
    const now = after.get(part) ?? []
    if (own.length === now.length && own.every((line, i) => line === now[i])) return []
    return [{ part, ...unifiedDiff(own, now, limits) }]
  })
}

/** Returns the diff of two texts. Lines above 200 characters are split where code and markup usually end a line. */
export function textDiff(before: string, after: string): Pick<PartDiff, 'lines' | 'cut'> {
  return unifiedDiff(shortLines(before), shortLines(after), defaultLimits)
}

function shortLines(text: string): readonly string[] {
  return text
    .split('\n')
    .flatMap((line) => (line.length > maxWholeLine ? line.split(/(?<=[;{}>])(?=[^;{}>])/) : [line]))
    .map(visibleText)
}

function textsOf(kind: PinKind, json: string | undefined): ReadonlyMap<PinnedPart, readonly string[]> {
  if (json === undefined) return new Map()
  try {
    const raw = partsOf(kind, Buffer.from(json))
    return new Map([...raw].map(([part, text]) => [part, linesOf(part, text)]))
  } catch (error) {
    if (error instanceof JsonError) return new Map([['other', [visibleText(json)]]])
    throw error
  }
}

/** Returns the lines of a text or, for any other value, the lines of indented JSON with sorted names. */
function linesOf(part: PinnedPart, raw: Buffer): readonly string[] {
  const value: unknown = exactJson(raw.toString())
  if (part === 'text' && typeof value === 'string') return value.split('\n').map(visibleText)
  if (part === 'text' && typeof value === 'object' && value !== null)
    return Object.entries(value)
      .sort(([a], [b]) => byText(a, b))
      .flatMap(([name, text]) =>
        `${name}: ${typeof text === 'string' ? text : indented(text)}`.split('\n').map(visibleText),
      )
  return indented(value).split('\n').map(visibleText)
}

function indented(value: unknown): string {
  return JSON.stringify(sortMembers(value), undefined, 2)
}

function sortMembers(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortMembers)
  if (typeof value !== 'object' || value === null || isRawJson(value)) return value
  const members = Object.entries(value).sort(([a], [b]) => byText(a, b))
  return Object.fromEntries(members.map(([name, member]) => [name, sortMembers(member)]))
}

function unifiedDiff(before: readonly string[], after: readonly string[], limits: DiffLimits) {
  let start = 0
  while (start < before.length && start < after.length && before[start] === after[start]) start++
  let end = 0
  while (
    end < before.length - start &&
    end < after.length - start &&
    before[before.length - 1 - end] === after[after.length - 1 - end]
  )
    end++
  const own = before.slice(start, before.length - end)
  const now = after.slice(start, after.length - end)
  const middle = own.length * now.length <= maxPairs ? diffLines(own, now) : replaceLines(own, now)
  const head = before.slice(0, start).map(contextLine)
  const tail = before.slice(before.length - end).map(contextLine)
  return truncateDiff([...head, ...middle, ...tail], limits)
}

function contextLine(line: string): string {
  return ` ${line}`
}

function replaceLines(before: readonly string[], after: readonly string[]): string[] {
  return [...before.map((line) => `-${line}`), ...after.map((line) => `+${line}`)]
}

/** Compares the lines by their longest common subsequence. */
function diffLines(before: readonly string[], after: readonly string[]): string[] {
  const width = after.length + 1
  const common = new Uint32Array((before.length + 1) * width)
  for (let i = before.length - 1; i >= 0; i--)
    for (let k = after.length - 1; k >= 0; k--)
      common[i * width + k] =
        before[i] === after[k]
          ? (common[(i + 1) * width + k + 1] ?? 0) + 1
          : Math.max(common[(i + 1) * width + k] ?? 0, common[i * width + k + 1] ?? 0)
  const lines: string[] = []
  let [i, k] = [0, 0]
  while (i < before.length || k < after.length) {
    if (i < before.length && k < after.length && before[i] === after[k]) {
      lines.push(` ${before[i++]}`)
      k++
    } else if (
      k >= after.length ||
      (i < before.length && (common[(i + 1) * width + k] ?? 0) >= (common[i * width + k + 1] ?? 0))
    )
      lines.push(`-${before[i++]}`)
    else lines.push(`+${after[k++]}`)
  }
  return lines
}

/**
 * Returns the changed lines with surrounding context. Truncates long lines and diffs, and adds a note about the omitted
 * part.
 */
function truncateDiff(lines: readonly string[], limits: DiffLimits): Pick<PartDiff, 'lines' | 'cut'> {
  const shown = new Set<number>()
  lines.forEach((line, at) => {
    if (line.startsWith(' ')) return
    for (let near = at - context; near <= at + context; near++) shown.add(near)
  })
  const result: string[] = []
  let gap = false
  let cut = false
  for (const [at, line] of lines.entries()) {
    if (!shown.has(at)) {
      gap = true
      continue
    }
    if (gap) result.push('@@')
    gap = false
    cut ||= line.length > limits.line
    result.push(
      line.length > limits.line ? `${line.slice(0, limits.line)}… (${line.length} characters)` : line,
    )
  }
  const more = result.length - limits.lines
  if (more <= 0) return { lines: result, cut }
  return { lines: [...result.slice(0, limits.lines), `@@ ${more} more lines`], cut: true }
}
