/** Finds the hidden characters in a string. The pages show the code points of these characters instead. */
import { hiddenInText } from '../../../../schemas/hidden-characters.ts'

export interface HiddenRun {
  /** Code point, such as `U+202E`. */
  readonly code: string
  readonly count: number
}

/** Splits the text into runs; adjacent identical hidden characters form one run. */
export function piecesOf(text: string): readonly (string | HiddenRun)[] {
  const pieces: (string | HiddenRun)[] = []
  let from = 0
  for (const match of text.matchAll(hiddenInText)) {
    if (match.index > from) pieces.push(text.slice(from, match.index))
    from = match.index + match[0].length
    const code = `U+${(match[0].codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`
    const last = pieces.at(-1)
    if (typeof last === 'object' && last.code === code)
      pieces[pieces.length - 1] = { code, count: last.count + 1 }
    else pieces.push({ code, count: 1 })
  }
  if (from < text.length) pieces.push(text.slice(from))
  return pieces
}
