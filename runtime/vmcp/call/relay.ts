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

/** The client's side of an operation, as a backend connection uses it. */
export class OperationRelay implements Relay {
  readonly bridges: boolean
  readonly #context: OperationContext
  readonly #options: RelayOptions
  /**
   * Runs a function in the asynchronous context of the operation. Events arrive in the context of whichever request opened
   * the connection, and would be audited and traced as part of that request.
   */
  readonly #inContext = AsyncLocalStorage.snapshot()

  constructor(context: OperationContext, options: RelayOptions) {
    this.bridges = options.bridges
    this.#context = context
    this.#options = options
  }

  get progressToken(): string | undefined {
    return this.#context.progressToken
  }

  get logLevel(): string | undefined {
    return this.#context.logLevel
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
