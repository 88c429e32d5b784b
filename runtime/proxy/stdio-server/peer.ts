/**
 * Starts an MCP server that communicates over standard input and output, exchanges lines with it, and ends it.
 *
 * Messages are lines of JSON and pass through unparsed; the sink receives what the server writes to standard error. The
 * process leads its own group, so that a wrapper such as npx ends together with the server that it has started.
 * Source: MCP 2025-11-25, transports, "stdio".
 */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import type { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { GatehouseError } from '../../../schemas/index.ts'
import { onOneLine } from '../../mcp/index.ts'
import { LineReader, logLineReader, maxLineBytes } from './line-reader.ts'
import { groupEnded, signalGroup } from './process-group.ts'

export interface PeerCommand {
  readonly command: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly cwd: string
}

export interface StdioPeer {
  /** Writes one message. Line breaks in the message are JSON whitespace and become spaces. */
  send(message: Buffer): void
  /**
   * Resolves with the reason when no more messages can be exchanged: the server has ended, or has closed one of the
   * two streams. All earlier output has been delivered by then.
   */
  readonly ended: Promise<string>
  /** Closes standard input, then sends SIGTERM, then SIGKILL. Resolves when the process has ended. */
  close(): Promise<void>
}

const graceMs = 2000
/** How long to keep reading output after the server has ended; a child process may keep the pipe open. */
const drainMs = 1000

/**
 * Starts the server. Calls `onMessage` with each line of its output, one at a time; reading pauses until the returned
 * promise settles. Calls `onLog` with each line of its standard error.
 */
export function startPeer(
  spec: PeerCommand,
  onMessage: (message: Buffer) => void | Promise<void>,
  onLog: (line: string) => void,
): StdioPeer {
  const [file = '', ...args] = spec.command
  const child = spawn(file, args, { cwd: spec.cwd, env: spec.env, detached: true, stdio: 'pipe' })
  return new Peer(child, onMessage, onLog)
}

class Peer implements StdioPeer {
  readonly ended: Promise<string>
  readonly #child: ChildProcessWithoutNullStreams
  /** Resolves with the exit code or signal. */
  readonly #exited: Promise<string>
  readonly #broken = Promise.withResolvers<string>()
  readonly #lines: LineReader
  readonly #drained: Promise<unknown>
  #killReason: string | undefined

  constructor(
    child: ChildProcessWithoutNullStreams,
    onMessage: (message: Buffer) => void | Promise<void>,
    onLog: (line: string) => void,
  ) {
    this.#child = child
    this.#exited = groupEnded(child)
    // Ends the server instead of letting an endless line fill up memory.
    this.#lines = new LineReader({
      onLine: onMessage,
      onOverflow: () => {
        this.#killReason = `printed a line of more than ${maxLineBytes} bytes`
        signalGroup(child.pid, 'SIGKILL')
      },
    })
    const stdout = readLines(child.stdout, this.#lines)
    this.#drained = Promise.all([stdout, readLines(child.stderr, logLineReader(onLog))])
    void stdout.then(() => this.#broken.resolve('closed its standard output'))
    child.stdin.on('error', () => this.#broken.resolve('closed its standard input'))
    this.ended = this.#awaitEnd()
  }

  async #awaitEnd(): Promise<string> {
    const why = await Promise.race([this.#exited, this.#awaitBroken()])
    await Promise.race([this.#drained, sleep(drainMs, undefined, { ref: false })])
    await this.#lines.busy
    return this.#killReason ?? why
  }

  /** Ends a server that has closed a stream and keeps running, because it is no longer usable. */
  async #awaitBroken(): Promise<string> {
    const why = await this.#broken.promise
    await Promise.race([this.#exited, sleep(graceMs / 4)])
    void this.#kill(0)
    return why
  }

  send(message: Buffer): void {
    const { stdin } = this.#child
    if (stdin.destroyed || !stdin.writable)
      throw new GatehouseError('BACKEND_UNREACHABLE', { detail: 'the server has stopped' })
    stdin.write(lineOf(message))
  }

  async close(): Promise<void> {
    this.#child.stdin.end()
    await this.#kill(graceMs / 4)
  }

  /** Sends SIGTERM after `termMs`, and SIGKILL later. Resolves when the process has ended. */
  async #kill(termMs: number): Promise<void> {
    const { pid } = this.#child
    const term = setTimeout(() => signalGroup(pid, 'SIGTERM'), termMs)
    const kill = setTimeout(() => signalGroup(pid, 'SIGKILL'), termMs + (graceMs * 3) / 4)
    await this.#exited
    clearTimeout(term)
    clearTimeout(kill)
  }
}

/** Reads a stream to its end, and pauses while lines are processed. Resolves when all lines have been passed on. */
function readLines(stream: Readable, lines: LineReader): Promise<void> {
  stream.on('data', (chunk: Buffer) => {
    lines.push(chunk)
    const { busy } = lines
    if (!busy || stream.isPaused()) return
    stream.pause()
    void busy.then(() => stream.resume())
  })
  return new Promise((resolve) => {
    stream.once('close', () => {
      lines.end()
      void Promise.resolve(lines.busy).then(resolve)
    })
  })
}

/** Returns a message as one line. */
export function lineOf(message: Buffer): Buffer {
  return Buffer.concat([onOneLine(message), lineEnd])
}

const lineEnd = Buffer.from('\n')
