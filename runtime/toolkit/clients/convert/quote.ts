/**
 * A command line that `gatehouse dev` splits into the same words again. No shell reads it.
 */
export function quoteCommand(words: readonly string[]): string {
  return words.map(quoteWord).join(' ')
}

function quoteWord(word: string): string {
  if (/^[\w@%+=:,./~{}-]+$/.test(word)) return word
  return `'${word.replaceAll("'", String.raw`'\''`)}'`
}
