/**
 * Which characters show nothing or change the order of text: controls, formats, marks of direction, zero-width and tag
 * characters, fillers, variation selectors. In texts of others they hide what a user would not accept.
 *
 * All patterns are global: use them with replaceAll, matchAll and search. Imports nothing, for the pages of the console
 * share it.
 */

const unseen = '\\p{Cc}\\p{Cf}\\p{Zl}\\p{Zp}\\p{Variation_Selector}\\p{Default_Ignorable_Code_Point}'

/**
 * What a joiner may stand beside: letters of scripts that are written with them, and emoji. Nothing that is not seen itself,
 * such as fillers and selectors, which count as letters and marks: it would shelter joiners and go.
 */
const joinable =
  '[[\\p{L}\\p{M}]--[\\p{Script=Latin}\\p{Script=Greek}\\p{Script=Cyrillic}\\p{Variation_Selector}\\p{Default_Ignorable_Code_Point}]]|[\\p{Extended_Pictographic}\\p{Emoji_Modifier}]'
/**
 * The zero-width non-joiner of Persian and of Indic scripts, the zero-width joiner of these and of composed emoji, the
 * selector of emoji. Elsewhere they would make two texts that look the same.
 */
const needed = `(?<=${joinable}|\\p{Extended_Pictographic}\\ufe0f)[\\u200c\\u200d](?=${joinable})|(?<=\\p{Emoji})\\ufe0f`

/** In one line, such as a name: tab and line breaks are hidden too. */
export const hiddenInLine = new RegExp(`(?!${needed})[${unseen}]`, 'gv')

/** In a text of several lines. */
export const hiddenInText = new RegExp(`(?!${needed}|\\r\\n)[[${unseen}]--[\\t\\n]]`, 'gv')

/**
 * Without exceptions, where texts are compared: lone surrogates too, and what has no meaning of its own (unassigned and
 * private characters).
 */
export const hiddenAnywhere = new RegExp(`[${unseen}\\p{Cs}\\p{Co}\\p{Cn}]`, 'gv')

/** Matches everything except printable ASCII and JSON white space. Text without a match needs no escapes. */
const mayHide = /[^\t\n\x20-\x7e]/

/** Escapes hidden characters in valid JSON, where they occur only in strings. A lone carriage return becomes a space. */
export function visibleJson(json: string): string {
  if (!mayHide.test(json)) return json
  return json.replaceAll(hiddenInText, (character) => (character === '\r' ? ' ' : unicodeEscape(character)))
}

/** Escapes each UTF-16 code unit of `character` as JSON does. */
export function unicodeEscape(character: string): string {
  return character
    .split('')
    .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
    .join('')
}
