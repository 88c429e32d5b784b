import { AsyncLocalStorage } from 'node:async_hooks'
import type { Ask, AskReply, ResultPassage } from '../../mcp/index.ts'
import type { Relay } from '../backends/connection.ts'
import type { OperationContext } from '../model/operation.ts'

interface RelayOptions {
  readonly bridges: boolean
  readonly needsWholeResult: boolean
  /** Returns a passage that also records the resource links of the result. */
  readonly watched: (passage: ResultPassage | undefined) => ResultPassage | undefined
}

/** Connects a backend connection to the client of an operation: progress, logs, questions and streamed results. */
export class OperationRelay implements Relay {
  readonly bridges: boolean
  readonly progressToken: string | undefined
  readonly logLevel: string | undefined
  readonly #context: OperationContext
  readonly #options: RelayOptions
  /**
   * Runs a function in the asynchronous context of the operation. Without it, events arrive in the context of the
   * request that opened the connection, and are audited and traced as part of that request.
   */
  readonly #inContext = AsyncLocalStorage.snapshot()

  constructor(context: OperationContext, options: RelayOptions) {
    this.bridges = options.bridges
    this.progressToken = context.progressToken
    this.logLevel = context.logLevel
    this.#context = context
    this.#options = options
  }

  progress(params: Buffer): void {
    this.#inContext(() => this.#context.progress(params))
  }

  log(params: Buffer): void {
    this.#inContext(() => this.#context.log(params))
  }

  ask(request: Ask, signal: AbortSignal): Promise<AskReply> {
    return this.#inContext(() => this.#context.ask(request, signal))
  }

  passage(): ResultPassage | undefined {
    const { needsWholeResult, watched } = this.#options
    return needsWholeResult ? undefined : watched(this.#context.passage?.())
  }
}
