/** What `mark` looks for: characters and sequences that a reader does not see, and delimiters that only the gateway may write. */
import { hiddenInText } from '../../../../../schemas/index.ts'
import type { Searched } from './search.ts'
import { type WindowPattern, WindowSearch } from './windows.ts'

/** Control sequences of terminals, whole; the text of those that set titles and links too. */
const ansi =
  '(?:\\x1b\\[|\\x9b)[0-?]{0,64}[ -\\/]{0,16}[@-~]|\\x1b\\][^\\x07\\x1b]{0,2048}(?:\\x07|\\x1b\\\\)'

/** Half a character shows nothing, and what is removed between two halves would make a character of them. */
const unseen = `${hiddenInText.source}|\\p{Cs}`
const single = new RegExp(unseen, 'gv')

const hidden: WindowPattern = {
  regExp: new RegExp(`${ansi}|${unseen}`, 'gv'),
  isFree: (text) => !/[^\t\n\x20-\x7e]/.test(text),
  reach: 2_100,
  joins: 64,
}

export const searchedHidden: Searched = () => new WindowSearch(hidden)

/** The name of the delimiters. */
export const delimiterName = 'tool-output'

/** What may stand within a forged delimiter; longer runs of it are escaped whatever follows, so that no number of them escapes. */
const unread = '\\s\\p{Cc}\\p{Cf}\\p{Variation_Selector}\\p{Default_Ignorable_Code_Point}'
const maxRun = 64

/** The rest of a delimiter of which some letters were read. */
function spelled([letter, ...letters]: readonly string[], gap: string): string {
  if (letter === undefined) return ''
  const read = letter === '-' ? '[\\p{Dash}_]' : letter
  return `(?:${gap}{${maxRun}}|${gap}{0,${maxRun - 1}}${read}${spelled(letters, `[${unread}]`)})`
}

/** Models read the full-width and the small one alike. */
const lessThan = '[<\\uff1c\\ufe64]'
const opens = new RegExp(lessThan, 'v')

const forged: WindowPattern = {
  // Only the first character: it is what is escaped.
  regExp: new RegExp(`${lessThan}(?=${spelled(delimiterName.split(''), `[\\/\\\\${unread}]`)})`, 'giv'),
  isFree: (text) => !opens.test(text),
  reach: (maxRun + 1) * (delimiterName.length + 1),
}

export const searchedForged: Searched = () => new WindowSearch(forged)

/** A match as a reader sees it: what is hidden in it as `\u{…}`. */
export function shownHidden(matched: string): string {
  return matched.replaceAll(single, (one) => `\\u{${(one.codePointAt(0) ?? 0).toString(16)}}`)
}
