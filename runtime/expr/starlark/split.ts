/** Taking texts apart: at white space, at separators, into lines; and cutting off their ends. */
import type { Meter } from './meter.ts'
import { isAscii, points } from './text.ts'

const SPACES = new Set([' ', '\t', '\n', '\v', '\f', '\r'])

/** At most `most` cuts (negative: all), from the left or from the right. */
export function split(
  text: string,
  by: string | undefined,
  most: number,
  fromRight: boolean,
  meter: Meter,
): string[] {
  meter.search(text.length, by?.length ?? 1)
  if (by === undefined) return splitAtSpace(text, most, fromRight, meter)
  return fromRight ? splitRight(text, by, most, meter) : splitLeft(text, by, most, meter)
}

function splitLeft(text: string, by: string, most: number, meter: Meter): string[] {
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

function splitRight(text: string, by: string, most: number, meter: Meter): string[] {
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

function isSpace(text: string, at: number): boolean {
  return SPACES.has(text.charAt(at))
}

/** Runs of white space are one separator, and none at the ends. */
function splitAtSpace(text: string, most: number, fromRight: boolean, meter: Meter): string[] {
  const parts: string[] = []
  let [from, to] = [0, text.length]
  for (;;) {
    if (fromRight) while (to > 0 && isSpace(text, to - 1)) to--
    else while (from < to && isSpace(text, from)) from++
    if (from >= to || to <= 0) break
    if (most >= 0 && parts.length >= most) {
      parts.push(text.slice(from, to))
      break
    }
    meter.elements(1)
    if (fromRight) {
      const end = to
      while (to > 0 && !isSpace(text, to - 1)) to--
      parts.push(text.slice(to, end))
    } else {
      const start = from
      while (from < to && !isSpace(text, from)) from++
      parts.push(text.slice(start, from))
    }
  }
  return fromRight ? parts.toReversed() : parts
}

export function splitLines(text: string, keepEnds: boolean): string[] {
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

/** Cuts off whatever of `letters` stands at the ends; none: white space. */
export function strip(text: string, letters: string, sides: 'both' | 'left' | 'right', meter: Meter): string {
  meter.search(text.length, 1)
  if (isAscii(letters)) return cutEnds(text, letters === '' ? SPACES : new Set(letters), sides)
  // A letter of several bytes is cut off as a whole or not at all.
  meter.elements(text.length)
  return cutEnds(pointsOf(text), new Set(pointsOf(letters)), sides).join('')
}

function cutEnds<T extends string | string[]>(
  parts: T,
  cut: ReadonlySet<string>,
  sides: 'both' | 'left' | 'right',
): T extends string ? string : string[]
function cutEnds(
  parts: string | string[],
  cut: ReadonlySet<string>,
  sides: 'both' | 'left' | 'right',
): string | string[] {
  let [from, to] = [0, parts.length]
  if (sides !== 'right') while (from < to && cut.has(parts[from] ?? '')) from++
  if (sides !== 'left') while (to > from && cut.has(parts[to - 1] ?? '')) to--
  return parts.slice(from, to)
}

/** The bytes of each code point. */
function pointsOf(text: string): string[] {
  const parts: string[] = []
  let at = 0
  for (const { length } of points(text)) {
    parts.push(text.slice(at, at + length))
    at += length
  }
  return parts
}
