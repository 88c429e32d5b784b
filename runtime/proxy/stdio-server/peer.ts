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
import { inTurns, joined, largeBytes, onOneLine, TurnQueue } from '../../mcp/index.ts'
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

/** Longest message a server may send; beyond it the server is ended rather than the memory filled. */
const maxLineBytes = 64 * 1024 * 1024
const graceMs = 2000
const lf = 0x0a

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
  const overflow = () => signalGroup(pid, 'SIGKILL')
  const lines = new TurnQueue((parts: readonly Buffer[]) => readLine(parts, onMessage), overflow)
  const split = lineSplitter((parts) => lines.push(parts), overflow)
  child.stdout.on('data', (chunk: Buffer) => {
    split(chunk)
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
      child.stdin.write(Buffer.concat([onOneLine(message), Buffer.from('\n')]))
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

function readLine(
  parts: readonly Buffer[],
  onLine: (line: Buffer) => void | Promise<void>,
): void | Promise<void> {
  const [only] = parts
  if (only && parts.length === 1) return onLine(only)
  const size = parts.reduce((sum, { length }) => sum + length, 0)
  return size < largeBytes ? onLine(Buffer.concat(parts, size)) : inTurns(joined(parts, size)).then(onLine)
}

/** `onLine` gets the parts of each line that is not empty. */
function lineSplitter(
  onLine: (parts: readonly Buffer[]) => void,
  onOverflow: () => void,
): (chunk: Buffer) => void {
  let parts: Buffer[] = []
  let size = 0
  return function split(chunk) {
    let from = 0
    for (let at = chunk.indexOf(lf); at >= 0; at = chunk.indexOf(lf, from)) {
      if (at > from) parts.push(chunk.subarray(from, at))
      if (parts.length > 0) onLine(parts)
      parts = []
      size = 0
      from = at + 1
    }
    const rest = chunk.subarray(from)
    size += rest.length
    if (size > maxLineBytes) return onOverflow()
    if (rest.length > 0) parts.push(rest)
  }
}
