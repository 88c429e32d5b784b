/**
 * Words of a search and of tools: which ones count, and how names made of several words come apart.
 *
 * Words that nearly every tool description holds are left out, common English words only of a task description: what a
 * client gives as keywords it has chosen. When nothing would be left, everything is taken.
 * Source: docs/reference/specification/virtual-server.md#optimizer, config.optimizer.
 */

/** Say nothing about a tool, because they stand in nearly every one. */
const emptyWords: ReadonlySet<string> = new Set(
  (
    'name description schema input output type properties required title id tool server meta data content text ' +
    'value field column table index key primary'
  ).split(' '),
)

const commonWords: ReadonlySet<string> = new Set(
  (
    'a about all am an and any are as at be been but by can could do does for from get give has have help how i if in ' +
    'into is it its let like me my need of on one or our please should so some that the their them then there these ' +
    'they this to use using want was we what when where which will with would you your'
  ).split(' '),
)

/** More than a long description has; the index takes the most telling of them (keywords.ts). */
const maxWords = 100
const maxWordChars = 128
const maxTextChars = 8_000

/** The words by which a search goes, each once, in order. */
export function searchWords(description: string, keywords: readonly string[]): string[] {
  const chosen = wordsIn(keywords)
  const own = chosen.filter((word) => !emptyWords.has(word.toLowerCase()))
  if (own.length > 0) return own.slice(0, maxWords)
  const told = wordsIn([description])
  const telling = told.filter((word) => !emptyWords.has(bare(word)) && !commonWords.has(bare(word)))
  return (telling.length > 0 ? telling : [...chosen, ...told]).slice(0, maxWords)
}

/** Words with a letter or digit, each once whatever its case. */
function wordsIn(texts: readonly string[]): string[] {
  const words = new Map<string, string>()
  for (const word of texts.flatMap((text) => text.slice(0, maxTextChars).split(/\s+/u))) {
    if (word.length > maxWordChars || !/[\p{L}\p{N}]/u.test(word)) continue
    const lower = word.toLowerCase()
    if (!words.has(lower)) words.set(lower, word)
  }
  return [...words.values()]
}

/** Without the punctuation around it, which a sentence brings along. */
function bare(word: string): string {
  return word.toLowerCase().replace(/^[^\p{L}\p{N}]+|[^\p{L}\p{N}]+$/gu, '')
}

/** `getUserById` and `HTTPServer2` with their parts apart; the same text when there is nothing to part. */
export function partWords(text: string): string {
  return text.replace(/([\p{Ll}\p{N}])(\p{Lu})/gu, '$1 $2').replace(/(\p{Lu})(\p{Lu}\p{Ll})/gu, '$1 $2')
}
