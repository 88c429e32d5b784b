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

/** Starts the server. `onMessage` gets each line it prints, `onLog` each line of its standard error. */
export function startPeer(
  spec: PeerCommand,
  onMessage: (message: Buffer) => void,
  onLog: (line: string) => void,
): StdioPeer {
  const [file = '', ...args] = spec.command
  const child = spawn(file, args, { cwd: spec.cwd, env: spec.env, detached: true, stdio: 'pipe' })
  const { pid } = child
  const ended = groupEnded(child)
  const overflow = () => signalGroup(pid, 'SIGKILL')
  child.stdout.on('data', lineSplitter(onMessage, overflow))
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

/** Raw line ends are legal white space in JSON, and would split the message in two on this transport. */
function onOneLine(message: Buffer): Buffer {
  if (!message.includes(lf)) return message
  return Buffer.from(message.toString('latin1').replaceAll(/[\r\n]+/g, ' '), 'latin1')
}

function lineSplitter(onLine: (line: Buffer) => void, onOverflow: () => void): (chunk: Buffer) => void {
  let parts: Buffer[] = []
  let size = 0
  return function split(chunk) {
    let from = 0
    for (let at = chunk.indexOf(lf); at >= 0; at = chunk.indexOf(lf, from)) {
      parts.push(chunk.subarray(from, at))
      const line = parts.length === 1 ? parts[0] : Buffer.concat(parts)
      parts = []
      size = 0
      from = at + 1
      if (line && line.length > 0) onLine(line)
    }
    const rest = chunk.subarray(from)
    size += rest.length
    if (size > maxLineBytes) return onOverflow()
    if (rest.length > 0) parts.push(rest)
  }
}
