/**
 * The patterns for `mark`, which match characters and sequences that readers do not see, and delimiters that only the
 * gateway may write.
 */
import { hiddenInText } from '../../../../../schemas/index.ts'
import type { Searched } from './search.ts'
import { type WindowPattern, WindowSearch } from './windows.ts'

/** Complete terminal control sequences, including the text of sequences that set titles and links. */
const ansi =
  '(?:\\x1b\\[|\\x9b)[0-?]{0,64}[ -\\/]{0,16}[@-~]|\\x1b\\][^\\x07\\x1b]{0,2048}(?:\\x07|\\x1b\\\\)'

/** A lone surrogate is invisible, and removing text between two halves would form a new character. */
const unseen = `${hiddenInText.source}|\\p{Cs}`
const single = new RegExp(unseen, 'gv')

const hidden: WindowPattern = {
  regExp: new RegExp(`${ansi}|${unseen}`, 'gv'),
  isFree: (text) => !/[^\t\n\x20-\x7e]/.test(text),
  reach: 2_100,
  joins: 64,
}

export const searchedHidden: Searched = () => new WindowSearch(hidden)

/** Name of the delimiters around tool output. */
export const delimiterName = 'tool-output'

/**
 * Characters that may occur within a forged delimiter. A longer run is escaped regardless of what follows, so padding
 * cannot evade the check.
 */
const unread = '\\s\\p{Cc}\\p{Cf}\\p{Variation_Selector}\\p{Default_Ignorable_Code_Point}'
const maxRun = 64

/** Returns a pattern for the remaining letters of a delimiter. */
function spelled([letter, ...letters]: readonly string[], gap: string): string {
  if (letter === undefined) return ''
  const read = letter === '-' ? '[\\p{Dash}_]' : letter
  return `(?:${gap}{${maxRun}}|${gap}{0,${maxRun - 1}}${read}${spelled(letters, `[${unread}]`)})`
}

/** Models treat the full-width and small variants as equivalent. */
const lessThan = '[<\\uff1c\\ufe64]'
const opens = new RegExp(lessThan, 'v')

const forged: WindowPattern = {
  // Match only the first character, because only this character is escaped.
  regExp: new RegExp(`${lessThan}(?=${spelled(delimiterName.split(''), `[\\/\\\\${unread}]`)})`, 'giv'),
  isFree: (text) => !opens.test(text),
  reach: (maxRun + 1) * (delimiterName.length + 1),
}

export const searchedForged: Searched = () => new WindowSearch(forged)

/** Returns the matched text in a form that readers can see. Hidden characters are shown as `\u{…}`. */
export function shownHidden(matched: string): string {
  return matched.replaceAll(single, (one) => `\\u{${(one.codePointAt(0) ?? 0).toString(16)}}`)
}
