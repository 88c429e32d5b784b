/**
 * Errors of workflows. The messages are for clients. A message may contain step ids, tool names and backend messages,
 * but never expanded arguments or addresses.
 */
import { ModuleError } from '../../../../schemas/index.ts'

/** A step failed. */
export class StepError extends ModuleError {
  /** True if a retry may succeed. */
  readonly retryable: boolean

  constructor(message: string, options: { retryable?: boolean; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? {} : { cause: options.cause })
    this.retryable = options.retryable ?? false
  }
}

/** A step or an iteration exceeded its timeout. */
export class StepTimeout extends StepError {
  constructor(timeoutMs: number, formatted: string) {
    super(`timed out after ${formatted}`)
    this.timeoutMs = timeoutMs
  }

  readonly timeoutMs: number
}

/** The whole workflow exceeded its timeout. */
export class WorkflowTimeout extends ModuleError {
  constructor(formatted: string) {
    super(`after ${formatted}`)
  }
}

/** An error that ends the whole call. */
export class WorkflowError extends ModuleError {}
