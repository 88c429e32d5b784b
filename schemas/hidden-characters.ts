/**
 * Patterns for characters that are invisible or change the order of text: control and format characters, bidirectional
 * marks, zero-width and tag characters, fillers and variation selectors. In untrusted text they can hide content from a
 * user.
 *
 * All patterns are global: use them with replaceAll, matchAll and search. This file imports nothing, because the
 * console pages share it.
 */

const unseen = '\\p{Cc}\\p{Cf}\\p{Zl}\\p{Zp}\\p{Variation_Selector}\\p{Default_Ignorable_Code_Point}'

/**
 * Characters next to which a joiner has a visible effect: letters of scripts that use joiners, and emoji. Excludes
 * invisible characters such as fillers and selectors, although Unicode classifies them as letters and marks. Otherwise,
 * a hidden joiner next to an invisible character would be acceptable.
 */
const joinable =
  '[[\\p{L}\\p{M}]--[\\p{Script=Latin}\\p{Script=Greek}\\p{Script=Cyrillic}\\p{Variation_Selector}\\p{Default_Ignorable_Code_Point}]]|[\\p{Extended_Pictographic}\\p{Emoji_Modifier}]'
/**
 * Legitimate uses: the zero-width non-joiner in Persian and Indic scripts, the zero-width joiner in these scripts and
 * in composed emoji, and the emoji selector. Anywhere else, these characters would make two different texts look the
 * same.
 */
const needed = `(?<=${joinable}|\\p{Extended_Pictographic}\\ufe0f)[\\u200c\\u200d](?=${joinable})|(?<=\\p{Emoji})\\ufe0f`

/** Matches in a single line, such as a name, where tabs and line breaks also count as hidden characters. */
export const hiddenInLine = new RegExp(`(?!${needed})[${unseen}]`, 'gv')

/** Matches in multi-line text. */
export const hiddenInText = new RegExp(`(?!${needed}|\\r\\n)[[${unseen}]--[\\t\\n]]`, 'gv')

/**
 * Matches hidden characters without exceptions, for comparing text. Also matches lone surrogates, and unassigned and
 * private-use characters.
 */
export const hiddenAnywhere = new RegExp(`[${unseen}\\p{Cs}\\p{Co}\\p{Cn}]`, 'gv')

/** Matches everything except printable ASCII and JSON whitespace. Text without a match needs no escapes. */
const mayHide = /[^\t\n\x20-\x7e]/

/** Escapes hidden characters in the strings of valid JSON. A lone carriage return becomes a space. */
export function visibleJson(json: string): string {
  if (!mayHide.test(json)) return json
  return json.replaceAll(hiddenInText, (character) => (character === '\r' ? ' ' : unicodeEscape(character)))
}

/** Escapes each UTF-16 code unit of `character`, as in JSON. */
export function unicodeEscape(character: string): string {
  return character
    .split('')
    .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
    .join('')
}
