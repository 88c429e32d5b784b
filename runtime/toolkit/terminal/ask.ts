/** Asks for a secret on a terminal, without showing what is typed. */
import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'

/** True when there is somebody to ask. */
export function canAsk(): boolean {
  return process.stdin.isTTY && process.stderr.isTTY
}

/** Empty when nothing was typed. Rejects when the terminal is closed or Ctrl-C is pressed. */
export async function askHidden(question: string): Promise<string> {
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
