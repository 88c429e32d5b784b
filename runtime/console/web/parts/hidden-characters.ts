/**
 * Finds characters that are not seen or that change the order of text: controls, zero-width, bidi, tags. The pages
 * show their code points instead.
 */
export interface HiddenRun {
  /** `U+202E`. */
  readonly code: string
  readonly count: number
}

/** First and last code point of each range. */
const ranges: readonly (readonly [number, number])[] = [
  [0x0, 0x8],
  [0xb, 0xc],
  [0xe, 0x1f],
  [0x7f, 0x9f],
  [0xad, 0xad],
  [0x34f, 0x34f],
  [0x61c, 0x61c],
  [0x115f, 0x1160],
  [0x17b4, 0x17b5],
  [0x180b, 0x180f],
  [0x200b, 0x200c],
  [0x200e, 0x200f],
  [0x2028, 0x202e],
  [0x2060, 0x206f],
  [0x3164, 0x3164],
  [0xfe00, 0xfe0e],
  [0xfeff, 0xfeff],
  [0xffa0, 0xffa0],
  [0xfff0, 0xfffb],
  [0xe0000, 0xe0fff],
]

const classText = ranges.map((range) => range.map((code) => `\\u{${code.toString(16)}}`).join('-')).join('')
/** Joiner and presentation selector are part of emoji; elsewhere they are hidden. */
const joiner = '(?<![\\p{Extended_Pictographic}\\u{fe0f}\\p{Emoji_Modifier}])\\u{200d}'
const selector = '(?<!\\p{Emoji})\\u{fe0f}'
const pattern = new RegExp(`[${classText}]|${joiner}|${selector}`, 'gu')

/** The text in pieces, in order; equal hidden characters beside each other are one run. */
export function piecesOf(text: string): readonly (string | HiddenRun)[] {
  const pieces: (string | HiddenRun)[] = []
  let from = 0
  for (const match of text.matchAll(pattern)) {
    if (match.index > from) pieces.push(text.slice(from, match.index))
    from = match.index + match[0].length
    const code = `U+${(match[0].codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`
    const last = pieces.at(-1)
    if (typeof last === 'object' && last.code === code)
      pieces[pieces.length - 1] = { code, count: last.count + 1 }
    else pieces.push({ code, count: 1 })
  }
  if (from < text.length) pieces.push(text.slice(from))
  return pieces
}
