/**
 * The bearer tokens that Metacontroller may present. Each call reads the file, so a new token takes effect immediately.
 * The file may contain two valid tokens, one per line, because Metacontroller may pick up a new token later than this
 * file changes.
 */
import { readFileSync } from 'node:fs'
import { invalidConfig } from '../../schemas/index.ts'

const maxTokens = 2

/**
 * Throws INVALID_CONFIG when the file contains no token or more than two. If the file later becomes unreadable or
 * empty, the function rejects all callers and calls `onLost` once.
 */
export function tokenReader(file: string, onLost: () => void): () => readonly string[] {
  const first = tokensIn(file)
  if (first.length === 0) throw invalidConfig('--token-file is empty')
  if (first.length > maxTokens)
    throw invalidConfig(
      `--token-file has ${first.length} lines; expected one token, or two during a rotation`,
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
    return tokensIn(file).slice(0, maxTokens)
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
