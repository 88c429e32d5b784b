/**
 * Runs a tunnel's program without a shell and forwards its output lines. Ends the program and all of its child
 * processes when the tunnel is closed.
 *
 * The program does not inherit Gatehouse's own environment variables, because they contain secrets.
 */
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import type { Environment } from '../../config/index.ts'
import { groupEnded, signalGroup } from '../stdio-server/process-group.ts'

export interface ChildOptions {
  readonly program: string
  readonly args: readonly string[]
  readonly env: Environment
  readonly onLine: (line: string, stream: 'stdout' | 'stderr') => void
  readonly signal: AbortSignal
}

const killAfterMs = 3_000

/** Resolves when the signal has ended the program. Rejects when the program ends on its own or cannot be started. */
export async function runChild(options: ChildOptions): Promise<void> {
  const { program, args, env, onLine, signal } = options
  const child = spawn(program, [...args], { env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
  const ended = groupEnded(child)
  follow(child.stdout, (line) => onLine(line, 'stdout'))
  follow(child.stderr, (line) => onLine(line, 'stderr'))
  let kill: NodeJS.Timeout | undefined
  const stop = (): void => {
    signalGroup(child.pid, 'SIGTERM')
    kill = setTimeout(() => signalGroup(child.pid, 'SIGKILL'), killAfterMs)
  }
  signal.addEventListener('abort', stop, { once: true })
  if (signal.aborted) stop()
  const why = await ended
  clearTimeout(kill)
  signal.removeEventListener('abort', stop)
  if (!signal.aborted) throw new Error(`${program}: ${why}`)
}

function follow(stream: Readable, onLine: (line: string) => void): void {
  createInterface({ input: stream }).on('line', onLine)
}

/** Returns the environment for an external program. */
export function foreignEnvironment(env: Environment): Environment {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith('GATEHOUSE_')))
}
