/**
 * Converts byte strings to upper, lower and title case, and tests their case. The conversion handles each letter
 * individually, so no letter becomes two letters.
 */
import { decode, encode, isAscii } from './text.ts'

const titleLetter = /\p{Lt}/u
const upperLetter = /\p{Lu}/u
const lowerLetter = /\p{Ll}/u
const anyLetter = /\p{L}/u
const digit = /\p{Nd}/u

/** Whitespace characters of the Go dialect, each as its bytes. */
export const spaces: ReadonlySet<string> = new Set(
  Array.from(
    '\t\n\v\f\r \u0085\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f' +
      '\u205f\u3000',
    encode,
  ),
)

/** Title case forms of the Unicode letters that look like two letters. */
const titleCases: Readonly<Record<string, string>> = {
  Ǆ: 'ǅ',
  ǆ: 'ǅ',
  Ǉ: 'ǈ',
  ǉ: 'ǈ',
  Ǌ: 'ǋ',
  ǌ: 'ǋ',
  Ǳ: 'ǲ',
  ǳ: 'ǲ',
}

function upperOf(letter: string): string {
  const upper = letter.toUpperCase()
  return Array.from(upper).length === 1 ? upper : letter
}

function lowerOf(letter: string): string {
  const lower = letter.toLowerCase()
  return Array.from(lower).length === 1 ? lower : letter
}

function titleOf(letter: string): string {
  return titleLetter.test(letter) ? letter : (titleCases[letter] ?? upperOf(letter))
}

function each(bytes: string, change: (letter: string, i: number) => string): string {
  return encode(Array.from(decode(bytes), change).join(''))
}

export function upper(bytes: string): string {
  return isAscii(bytes) ? bytes.toUpperCase() : each(bytes, upperOf)
}

export function lower(bytes: string): string {
  return isAscii(bytes) ? bytes.toLowerCase() : each(bytes, lowerOf)
}

export function capitalize(bytes: string): string {
  return each(bytes, (letter, i) => (i === 0 ? titleOf(letter) : lowerOf(letter)))
}

export function title(bytes: string): string {
  let inWord = false
  return each(bytes, (letter) => {
    const changed = inWord ? lowerOf(letter) : titleOf(letter)
    inWord = anyLetter.test(letter)
    return changed
  })
}

function isCased(letter: string): boolean {
  return upperLetter.test(letter) || lowerLetter.test(letter) || titleLetter.test(letter)
}

type LetterTest = (letters: readonly string[]) => boolean

const every =
  (...tests: readonly ((letter: string) => boolean)[]): LetterTest =>
  (letters) =>
    letters.length > 0 && letters.every((letter) => tests.some((test) => test(letter)))

const isLetter = (letter: string): boolean => anyLetter.test(letter)
const isDigit = (letter: string): boolean => digit.test(letter)
const isSpace = (letter: string): boolean => spaces.has(encode(letter))

/** True when the string has cased letters, and all of them have this case. */
const cased =
  (pattern: RegExp): LetterTest =>
  (letters) => {
    const own = letters.filter(isCased)
    return own.length > 0 && own.every((letter) => pattern.test(letter))
  }

/** True when each word starts with a capital letter and continues in lower case. */
function isTitle(letters: readonly string[]): boolean {
  let before = false
  let any = false
  for (const letter of letters) {
    const isLower = lowerLetter.test(letter)
    const isUpper = upperLetter.test(letter) || titleLetter.test(letter)
    if ((isLower && !before) || (isUpper && (before || titleOf(letter) !== letter))) return false
    any ||= isUpper
    before = isLower || isUpper
  }
  return any
}

const letterTests = {
  isalnum: every(isLetter, isDigit),
  isalpha: every(isLetter),
  isdigit: every(isDigit),
  islower: cased(lowerLetter),
  isspace: every(isSpace),
  istitle: isTitle,
  isupper: cased(upperLetter),
} as const satisfies Readonly<Record<string, LetterTest>>

export type LetterQuestion = keyof typeof letterTests

export function testLetters(question: LetterQuestion, bytes: string): boolean {
  return letterTests[question](Array.from(decode(bytes)))
}
