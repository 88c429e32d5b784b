/**
 * Splits a command line into words as a shell does: whitespace separates words, quotes group them, and a backslash
 * escapes. Returns an error message for variables, globs, pipes and redirections, which need a shell.
 */
export function splitCommand(line: string): string[] | string {
  const words: string[] = []
  let word: string | undefined
  let quote: '"' | "'" | undefined
  for (let i = 0; i < line.length; i++) {
    const char = line.charAt(i)
    if (quote) {
      if (char === quote) quote = undefined
      else if (char === '\\' && quote === '"' && i + 1 < line.length) word += line.charAt(++i)
      else word += char
    } else if (char === '"' || char === "'") {
      quote = char
      word ??= ''
    } else if (char === '\\' && i + 1 < line.length) {
      word = (word ?? '') + line.charAt(++i)
    } else if (/\s/.test(char)) {
      if (word !== undefined) words.push(word)
      word = undefined
    } else if (/[|&;<>`$()]/.test(char)) {
      return `"${char}" needs a shell; write only a program and its arguments, or quote the character`
    } else {
      word = (word ?? '') + char
    }
  }
  if (quote) return `the quote ${quote} is not closed`
  if (word !== undefined) words.push(word)
  return words.length > 0 ? words : 'the command is empty'
}
