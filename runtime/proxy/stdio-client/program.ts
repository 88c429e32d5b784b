/**
 * A client that speaks the session era, and an MCP server that is a program: starts it, and carries lines of JSON-RPC
 * between the two until one of them ends. A program that refuses `initialize`, and speaks the stateless era, is spoken to in
 * that era.
 * Source: MCP 2025-11-25 and 2026-07-28, stdio.
 */
import type { Readable, Writable } from 'node:stream'
import {
  type Message,
  resultMessage,
  scanClientMessage,
  discover,
  linkOver,
  LinkRequester,
  SessionTranslator,
} from '../../mcp/index.ts'
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
  /** Raw JSON of our own `Implementation`. */
  readonly info: string
  /** Gets what the program writes to standard error. */
  readonly onLine: (line: string) => void
  /** Ends the program. */
  readonly signal: AbortSignal
}

/** Resolves with why the program ended, once it is gone: by itself, or because the input ended. */
export async function runProgram(options: ProgramOptions): Promise<string> {
  const program = new Program(options)
  return program.run()
}

class Program {
  readonly #options: ProgramOptions
  readonly #writer: LineWriter
  readonly #peer: StdioPeer
  #initialize: Message | undefined
  #probe: LinkRequester | undefined
  #translator: SessionTranslator | undefined

  constructor(options: ProgramOptions) {
    this.#options = options
    this.#writer = makeLineWriter(options.output)
    const { log, onLine } = options
    const onMessage = messagesOf(log, { onMessage: (message) => this.#receive(message), onText: onLine })
    this.#peer = startPeer(options, onMessage, onLine)
  }

  async run(): Promise<string> {
    const { input, signal } = this.#options
    const stop = (): void => void input.destroy()
    signal.addEventListener('abort', stop, { once: true })
    if (signal.aborted) stop()
    void this.#peer.ended.then((why) => {
      this.#probe?.failAll(linkOver(why))
      this.#translator?.end(linkOver(why))
      stop()
    })
    try {
      for await (const line of readLines(input, maxMessageBytes)) {
        if (!(line instanceof Oversize)) this.#fromClient(scanClientMessage(line, Infinity))
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
    if (message.method === 'initialize') this.#initialize = message
    if (this.#translator) void this.#translator.fromClient(message)
    else this.#send(message.bytes)
  }

  #send(bytes: Buffer): void {
    try {
      this.#peer.send(bytes)
    } catch {
      // It has ended, which `run` reports.
    }
  }

  #receive(message: Message): void {
    if (this.#translator) void this.#translator.fromServer(message)
    else if (this.#probe?.take(message)) return
    else if (this.#initialize && message.method === '' && message.id === this.#initialize.id) {
      this.#initialized(this.#initialize, message)
    } else void this.#writer.write(message.bytes)
  }

  /** The program's response to the client's `initialize`; one that refuses it may speak the stateless era. */
  #initialized(initialize: Message, response: Message): void {
    this.#initialize = undefined
    if (response.result) void this.#writer.write(response.bytes)
    else void this.#probeEra(initialize, response)
  }

  async #probeEra(initialize: Message, refusal: Message): Promise<void> {
    const { info, log } = this.#options
    const probe = new LinkRequester((message) => this.#peer.send(message))
    this.#probe = probe
    try {
      const discovered = await discover(probe, info)
      if (!discovered) return await this.#writer.write(refusal.bytes)
      this.#translator = new SessionTranslator({
        toServer: (message) => this.#peer.send(message),
        client: {
          send: (message) => this.#writer.write(message),
          respond: (id, result) => this.#writer.write(resultMessage(id, result)),
          drop: () => undefined,
        },
        log,
        discovered,
      })
      await this.#translator.fromClient(initialize)
    } catch {
      // The program has ended, which `run` tells.
    } finally {
      this.#probe = undefined
    }
  }
}
