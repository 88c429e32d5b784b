/** Runs a program for a tunnel: no shell, its lines handed on, ended together with the tunnel. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'

export interface ChildOptions {
  readonly program: string
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string | undefined>>
  readonly onLine: (line: string, stream: 'stdout' | 'stderr') => void
  readonly signal: AbortSignal
}

const killAfterMs = 3_000

/** Resolves when the program ends by the signal; rejects when it ends by itself or cannot be started. */
export async function runChild(options: ChildOptions): Promise<void> {
  const child = spawn(options.program, [...options.args], {
    env: { ...options.env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  follow(child.stdout, (line) => options.onLine(line, 'stdout'))
  follow(child.stderr, (line) => options.onLine(line, 'stderr'))
  const stop = (): void => end(child)
  options.signal.addEventListener('abort', stop, { once: true })
  try {
    if (options.signal.aborted) stop()
    const [code, signal] = await once(child, 'exit')
    if (!options.signal.aborted)
      throw new Error(`${options.program} ended with ${signal === null ? `code ${code}` : signal}`)
  } finally {
    options.signal.removeEventListener('abort', stop)
  }
}

function follow(stream: Readable, onLine: (line: string) => void): void {
  createInterface({ input: stream }).on('line', onLine)
}

function end(child: ChildProcess): void {
  child.kill('SIGTERM')
  setTimeout(() => child.kill('SIGKILL'), killAfterMs).unref()
}
