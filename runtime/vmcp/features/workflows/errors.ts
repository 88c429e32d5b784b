/**
 * How a workflow goes wrong. Messages are for clients: ids of steps and names of tools, what a backend said, never
 * expanded arguments or addresses.
 */
import { ModuleError } from '../../../../schemas/index.ts'

/** A step failed. */
export class StepError extends ModuleError {
  /** True when trying again may help. */
  readonly retryable: boolean

  constructor(message: string, options: { retryable?: boolean; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? {} : { cause: options.cause })
    this.retryable = options.retryable ?? false
  }
}

/** A step, or one iteration, took longer than it may. */
export class StepTimeout extends StepError {
  constructor(timeoutMs: number, formatted: string) {
    super(`timed out after ${formatted}`)
    this.timeoutMs = timeoutMs
  }

  readonly timeoutMs: number
}

/** The whole workflow took longer than it may. */
export class WorkflowTimeout extends ModuleError {
  constructor(formatted: string) {
    super(`after ${formatted}`)
  }
}

/** The call as a whole cannot be answered otherwise than with this. */
export class WorkflowError extends ModuleError {}
