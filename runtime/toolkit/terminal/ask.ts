/** Asks for a secret on a terminal, without echoing the input. */
import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'

/** True when the user can be prompted: standard input and standard error are terminals. */
export function canPrompt(): boolean {
  return process.stdin.isTTY && process.stderr.isTTY
}

/** Returns the entered secret, or an empty string. Rejects when the terminal is closed or the user presses Ctrl-C. */
export async function promptSecret(question: string): Promise<string> {
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() })
  const lines = createInterface({ input: process.stdin, output: silent, terminal: true })
  const stop = new AbortController()
  lines.once('SIGINT', () => stop.abort())
  lines.once('close', () => stop.abort())
  process.stderr.write(question)
  try {
    return await lines.question('', { signal: stop.signal })
  } finally {
    process.stderr.write('\n')
    lines.close()
  }
}

/** Returns true when the user answers yes. Returns false for any other answer, and when the terminal is closed. */
export async function confirm(question: string): Promise<boolean> {
  const lines = createInterface({ input: process.stdin, output: process.stderr })
  const stop = new AbortController()
  lines.once('SIGINT', () => stop.abort())
  lines.once('close', () => stop.abort())
  try {
    return /^y(?:es)?$/i.test((await lines.question(question, { signal: stop.signal })).trim())
  } catch {
    return false
  } finally {
    lines.close()
  }
}
