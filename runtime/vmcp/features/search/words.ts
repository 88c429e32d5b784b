/**
 * Extracts the words from a search text. Splits names that consist of several words.
 *
 * Words that occur in nearly every tool description are dropped. Common English words are dropped only from a task
 * description, because a client chooses its keywords deliberately. If no words would remain, all words are used.
 * Source: docs/reference/specification/virtual-server.md#optimizer, config.optimizer.
 */

/** Words that occur in nearly every tool and therefore provide no information. */
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

/**
 * Maximum number of words, which is larger than the number of words in a long description. The index uses the rarest
 * words (keywords.ts).
 */
const maxWords = 100
const maxWordChars = 128
const maxTextChars = 8_000

/** Returns the distinct words of a search, in order. */
export function searchWords(description: string, keywords: readonly string[]): string[] {
  const chosen = wordsIn(keywords)
  const own = chosen.filter((word) => !emptyWords.has(word.toLowerCase()))
  if (own.length > 0) return own.slice(0, maxWords)
  const descriptionWords = wordsIn([description])
  const meaningful = descriptionWords.filter(
    (word) => !emptyWords.has(bare(word)) && !commonWords.has(bare(word)),
  )
  return (meaningful.length > 0 ? meaningful : [...chosen, ...descriptionWords]).slice(0, maxWords)
}

/** Returns the distinct words that contain a letter or digit, ignoring case. */
function wordsIn(texts: readonly string[]): string[] {
  const words = new Map<string, string>()
  for (const word of texts.flatMap((text) => text.slice(0, maxTextChars).split(/\s+/u))) {
    if (word.length > maxWordChars || !/[\p{L}\p{N}]/u.test(word)) continue
    const lower = word.toLowerCase()
    if (!words.has(lower)) words.set(lower, word)
  }
  return [...words.values()]
}

/** Removes surrounding punctuation. */
function bare(word: string): string {
  return word.toLowerCase().replace(/^[^\p{L}\p{N}]+|[^\p{L}\p{N}]+$/gu, '')
}

/** Splits `getUserById` and `HTTPServer2` into their parts. Returns other text unchanged. */
export function partWords(text: string): string {
  return text.replace(/([\p{Ll}\p{N}])(\p{Lu})/gu, '$1 $2').replace(/(\p{Lu})(\p{Lu}\p{Ll})/gu, '$1 $2')
}
