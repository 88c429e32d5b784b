/**
 * Connects a session-era client to an MCP server that is a program: starts it and forwards JSON-RPC lines in both
 * directions until one side ends. When the program rejects `initialize` and supports the stateless era, messages are
 * translated.
 * Source: MCP 2025-11-25 and 2026-07-28, stdio.
 */
import type { Readable, Writable } from 'node:stream'
import { InitializeFallback, linkEnded, resultMessage, scanMessage, type Message } from '../../mcp/index.ts'
import type { Log } from '../../net/index.ts'
import { messagesOf } from '../stdio-server/messages.ts'
import { type PeerCommand, startPeer, type StdioPeer } from '../stdio-server/peer.ts'
import { maxMessageBytes } from './http.ts'
import { type LineWriter, makeLineWriter, readLines } from './lines.ts'
import { Oversize } from './oversize.ts'

export interface ProgramOptions extends PeerCommand {
  readonly input: Readable
  readonly output: Writable
  readonly log: Log
  /** This program's own `Implementation` as raw JSON. */
  readonly info: string
  /** Called with each line that the program writes to standard error. */
  readonly onLine: (line: string) => void
  /** Ends the program. */
  readonly signal: AbortSignal
}

/** Resolves with the reason after the program has ended, either by itself or because the input ended. */
export async function runProgram(options: ProgramOptions): Promise<string> {
  const program = new Program(options)
  return program.run()
}

class Program {
  readonly #options: ProgramOptions
  readonly #writer: LineWriter
  readonly #peer: StdioPeer
  readonly #fallback: InitializeFallback

  constructor(options: ProgramOptions) {
    this.#options = options
    this.#writer = makeLineWriter(options.output)
    const { log, info, onLine } = options
    const write = (message: Buffer): Promise<void> => this.#writer.write(message)
    this.#fallback = new InitializeFallback({
      toServer: (message) => this.#peer.send(message),
      deliver: ({ bytes }) => void write(bytes),
      client: {
        send: write,
        respond: (id, result) => write(resultMessage(id, result)),
        drop: () => undefined,
      },
      info,
      log,
    })
    const onMessage = messagesOf(log, {
      onMessage: (message) => this.#fallback.fromServer(message),
      onText: onLine,
    })
    this.#peer = startPeer(options, onMessage, onLine)
  }

  async run(): Promise<string> {
    const { input, signal } = this.#options
    const stop = (): void => void input.destroy()
    signal.addEventListener('abort', stop, { once: true })
    if (signal.aborted) stop()
    void this.#peer.ended.then((why) => {
      this.#fallback.end(linkEnded(why))
      stop()
    })
    try {
      for await (const line of readLines(input, maxMessageBytes)) {
        if (!(line instanceof Oversize)) this.#fromClient(scanMessage(line, { dropNulls: true }))
      }
    } catch (error) {
      // Destroying the input ends the loop above.
      if (!input.destroyed) throw error
    } finally {
      signal.removeEventListener('abort', stop)
      await this.#peer.close()
    }
    return this.#peer.ended
  }

  #fromClient(message: Message): void {
    try {
      this.#fallback.fromClient(message)
    } catch {
      // The program has ended, which `run` reports.
    }
  }
}
