/** Splits strings at whitespace, separators and line endings, and strips their ends. */
import type { ScriptMeter } from '../vm/meter.ts'
import { spaces } from '../values/letters.ts'
import { isAscii, pointsOf } from '../values/text.ts'

/** Splits up to `most` times, or without a limit if `most` is negative, from the left or from the right. */
export function split(
  text: string,
  by: string | undefined,
  most: number,
  fromRight: boolean,
  meter: ScriptMeter,
): string[] {
  meter.search(text.length, by?.length ?? 1)
  if (by === undefined) return splitAtSpace(text, most, fromRight, meter)
  return fromRight ? splitRight(text, by, most, meter) : splitLeft(text, by, most, meter)
}

function splitLeft(text: string, by: string, most: number, meter: ScriptMeter): string[] {
  const parts: string[] = []
  let at = 0
  for (let found = text.indexOf(by); found >= 0; found = text.indexOf(by, at)) {
    if (most >= 0 && parts.length >= most) break
    meter.elements(1)
    parts.push(text.slice(at, found))
    at = found + by.length
  }
  parts.push(text.slice(at))
  return parts
}

function splitRight(text: string, by: string, most: number, meter: ScriptMeter): string[] {
  if (most < 0) return splitLeft(text, by, most, meter)
  const parts: string[] = []
  let end = text.length
  while (parts.length < most) {
    const found = end < by.length ? -1 : text.lastIndexOf(by, end - by.length)
    if (found < 0) break
    meter.elements(1)
    parts.push(text.slice(found + by.length, end))
    end = found
  }
  parts.push(text.slice(0, end))
  return parts.toReversed()
}

/** Maximum number of bytes in a whitespace character. */
const longestSpace = 3

/** Returns the length of the whitespace character at `at`, or 0. */
function spaceAt(text: string, at: number): number {
  const most = text.charCodeAt(at) < 0x80 ? 1 : longestSpace
  for (let length = 1; length <= most; length++) if (spaces.has(text.slice(at, at + length))) return length
  return 0
}

/** Returns the length of the whitespace character that ends before `end`, or 0. */
function spaceBefore(text: string, end: number): number {
  const most = text.charCodeAt(end - 1) < 0x80 ? 1 : longestSpace
  for (let length = 1; length <= most; length++) if (spaces.has(text.slice(end - length, end))) return length
  return 0
}

/** Splits at runs of whitespace, and ignores leading and trailing whitespace. */
function splitAtSpace(text: string, most: number, fromRight: boolean, meter: ScriptMeter): string[] {
  const parts: string[] = []
  let [from, to] = [0, text.length]
  for (;;) {
    if (fromRight) to = withoutSpace(text, from, to, 'right')[1]
    else from = withoutSpace(text, from, to, 'left')[0]
    if (from >= to) break
    if (most >= 0 && parts.length >= most) {
      parts.push(text.slice(from, to))
      break
    }
    meter.elements(1)
    if (fromRight) {
      const end = to
      while (to > from && spaceBefore(text, to) === 0) to--
      parts.push(text.slice(to, end))
    } else {
      const start = from
      while (from < to && spaceAt(text, from) === 0) from++
      parts.push(text.slice(start, from))
    }
  }
  return fromRight ? parts.toReversed() : parts
}

/** Returns the range without the whitespace on the given sides. */
function withoutSpace(text: string, start: number, end: number, sides: Sides): [from: number, to: number] {
  let [from, to] = [start, end]
  if (sides !== 'right')
    for (let length = 1; length > 0 && from < to; from += length) length = spaceAt(text, from)
  if (sides !== 'left')
    for (let length = 1; length > 0 && from < to; to -= length) length = spaceBefore(text, to)
  return [from, Math.max(from, to)]
}

type Sides = 'both' | 'left' | 'right'

export function splitLines(text: string, keepEnds: boolean, meter: ScriptMeter): string[] {
  meter.elements(linesIn(text))
  const lines: string[] = []
  let at = 0
  while (at < text.length) {
    const found = text.indexOf('\n', at)
    const end = found < 0 ? text.length : found
    lines.push(text.slice(at, keepEnds && found >= 0 ? end + 1 : end))
    at = end + 1
  }
  return lines
}

function linesIn(text: string): number {
  let count = 1
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) count++
  return count
}

/** Strips `letters` from the ends; an empty string strips whitespace. */
export function strip(text: string, letters: string, sides: Sides, meter: ScriptMeter): string {
  meter.search(text.length, 1)
  if (letters === '') return text.slice(...withoutSpace(text, 0, text.length, sides))
  if (isAscii(letters)) return cutEnds(text, new Set(letters), sides)
  // Multi-byte letters are stripped as a whole or not at all.
  meter.elements(text.length)
  return cutEnds(pointsOf(text), new Set(pointsOf(letters)), sides).join('')
}

function cutEnds<T extends string | string[]>(
  parts: T,
  cut: ReadonlySet<string>,
  sides: Sides,
): T extends string ? string : string[]
function cutEnds(parts: string | string[], cut: ReadonlySet<string>, sides: Sides): string | string[] {
  let [from, to] = [0, parts.length]
  if (sides !== 'right') while (from < to && cut.has(parts[from] ?? '')) from++
  if (sides !== 'left') while (to > from && cut.has(parts[to - 1] ?? '')) to--
  return parts.slice(from, to)
}
