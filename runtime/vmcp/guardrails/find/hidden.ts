/** What `mark` looks for: characters and sequences that a reader does not see, and delimiters that only the gateway may write. */
import { hiddenInText } from '../../../../schemas/index.ts'
import type { Searched } from './search.ts'
import { type WindowPattern, WindowSearch } from './windows.ts'

/** Control sequences of terminals, whole; the text of those that set titles and links too. */
const ansi =
  '(?:\\x1b\\[|\\x9b)[0-?]{0,64}[ -\\/]{0,16}[@-~]|\\x1b\\][^\\x07\\x1b]{0,2048}(?:\\x07|\\x1b\\\\)'

const hidden: WindowPattern = {
  regExp: new RegExp(`${ansi}|${hiddenInText.source}`, 'gv'),
  isFree: (text) => !/[^\t\n\x20-\x7e]/.test(text),
  reach: 2_100,
  joins: 64,
}

export const searchedHidden: Searched = () => new WindowSearch(hidden)

/** The name of the delimiters. */
export const delimiterName = 'tool-output'

const unseen = '[\\p{Cc}\\p{Cf}\\p{Variation_Selector}\\p{Default_Ignorable_Code_Point}]'

const forged: WindowPattern = {
  // Only the first character: it is what is escaped.
  regExp: new RegExp(`<(?=[\\s\\/${unseen}]{0,8}${delimiterName.split('').join(`${unseen}{0,4}`)})`, 'giv'),
  isFree: (text) => !text.includes('<'),
  reach: 100,
}

export const searchedForged: Searched = () => new WindowSearch(forged)

/** A match as a reader sees it: what is hidden in it as `\u{…}`. */
export function shownHidden(matched: string): string {
  return matched.replaceAll(hiddenInText, (one) => `\\u{${(one.codePointAt(0) ?? 0).toString(16)}}`)
}
