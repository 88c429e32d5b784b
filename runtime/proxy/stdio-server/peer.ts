/**
 * One MCP server that speaks on its standard input and output: started, spoken to line by line, ended.
 *
 * Messages are lines of JSON and pass unread; what the server writes to standard error goes to the sink. The process
 * leads its own group, so that a wrapper such as npx ends together with the server it started.
 * Source: MCP 2025-11-25, transports, "stdio".
 */
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { GatehouseError } from '../../../schemas/index.ts'
import { onOneLine } from '../../mcp/index.ts'
import { LineReader } from './line-reader.ts'
import { groupEnded, signalGroup } from './process-group.ts'

export interface PeerCommand {
  readonly command: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly cwd: string
}

export interface StdioPeer {
  /** Writes one message; line ends inside it are white space of JSON and become blanks. */
  send(message: Buffer): void
  /** Why the server ended; resolves once. */
  readonly ended: Promise<string>
  /** Closes standard input, then SIGTERM, then SIGKILL. Resolves when the process is gone. */
  close(): Promise<void>
}

const graceMs = 2000

/**
 * Starts the server. `onMessage` gets each line it prints, one after the other: nothing more is read of it until the
 * promise of a line is settled. `onLog` gets each line of its standard error.
 */
export function startPeer(
  spec: PeerCommand,
  onMessage: (message: Buffer) => void | Promise<void>,
  onLog: (line: string) => void,
): StdioPeer {
  const [file = '', ...args] = spec.command
  const child = spawn(file, args, { cwd: spec.cwd, env: spec.env, detached: true, stdio: 'pipe' })
  const { pid } = child
  const ended = groupEnded(child)
  // The server is ended rather than the memory filled.
  const lines = new LineReader({ onLine: onMessage, onOverflow: () => signalGroup(pid, 'SIGKILL') })
  child.stdout.on('data', (chunk: Buffer) => {
    lines.push(chunk)
    const { busy } = lines
    if (!busy || child.stdout.isPaused()) return
    child.stdout.pause()
    void busy.then(() => child.stdout.resume())
  })
  createInterface({ input: child.stderr }).on('line', onLog)
  // A server that ends while being written to: `ended` tells, the write error adds nothing.
  child.stdin.on('error', () => undefined)
  return {
    ended,
    send(message) {
      if (child.stdin.destroyed)
        throw new GatehouseError('BACKEND_UNREACHABLE', { detail: 'the server has ended' })
      child.stdin.write(lineOf(message))
    },
    async close() {
      child.stdin.end()
      const term = setTimeout(() => signalGroup(pid, 'SIGTERM'), graceMs / 4)
      const kill = setTimeout(() => signalGroup(pid, 'SIGKILL'), graceMs)
      await ended
      clearTimeout(term)
      clearTimeout(kill)
    },
  }
}

/** A message as the line that carries it. */
export function lineOf(message: Buffer): Buffer {
  return Buffer.concat([onOneLine(message), lineEnd])
}

const lineEnd = Buffer.from('\n')
