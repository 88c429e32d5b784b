/**
 * The bearer tokens that Metacontroller may present. The file is read at each call, so that a new token counts at once;
 * two lines are two valid tokens, because Metacontroller takes a new one later than the file does.
 */
import { readFileSync } from 'node:fs'
import { invalidConfig } from '../../schemas/index.ts'

const most = 2

/**
 * Throws INVALID_CONFIG when the file holds no token or more than two. Unreadable or empty later: nobody is let in, and
 * `onLost` is called once each time that this begins.
 */
export function tokenReader(file: string, onLost: () => void): () => readonly string[] {
  const first = tokensIn(file)
  if (first.length === 0) throw invalidConfig('--token-file is empty')
  if (first.length > most)
    throw invalidConfig(
      `--token-file holds ${first.length} lines; it takes one token, or two during a rotation`,
    )
  let isLost = false
  return () => {
    const tokens = tokensNow(file)
    if (tokens.length === 0 && !isLost) onLost()
    isLost = tokens.length === 0
    return tokens
  }
}

function tokensNow(file: string): readonly string[] {
  try {
    return tokensIn(file).slice(0, most)
  } catch {
    return []
  }
}

function tokensIn(file: string): string[] {
  return readFileSync(file, 'utf8')
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
}
