/** The possible outcomes of an operation, and the results that Gatehouse itself returns. */
import { JsonObject, type PassedMembers, rpcCode } from '../../mcp/index.ts'
import { annotateDenial, type AuditOutcome, isToolError } from '../../observe/index.ts'
import { GatehouseError } from '../../../schemas/index.ts'

/** How an operation ended. Gatehouse's own errors are thrown as GatehouseError instead. */
export type Outcome =
  | {
      readonly kind: 'result'
      readonly result: Buffer
      /** Large members that the client has already received. `result` contains small placeholders. */
      readonly passed?: PassedMembers | undefined
      /**
       * Reason code for a refusal. Present only if Gatehouse refused the call and returns the refusal as a tool result.
       */
      readonly denial?: string
    }
  /** A JSON-RPC error object from the backend, forwarded unchanged. */
  | { readonly kind: 'error'; readonly error: Buffer }
  /** A raw InputRequiredResult from the stateless era. The client repeats the request with the requested answers. */
  | {
      readonly kind: 'input'
      readonly result: Buffer
      /** Identity of the backend that requests the input. See `Operation.stateFor`. */
      readonly backend?: string | undefined
    }
  /**
   * A tool call that continues as a task. Backends return their own task objects, and the task link translates them for
   * the client.
   */
  | { readonly kind: 'task'; readonly result: Buffer }

/** Returns the size of a backend's response in bytes. */
export function sizeOf(outcome: Outcome): number {
  if (outcome.kind === 'error') return outcome.error.length
  return outcome.result.length + ((outcome.kind === 'result' && outcome.passed?.bytes) || 0)
}

/** True if the backend reports that the headers do not match the arguments. */
export function isHeaderMismatch(outcome: Outcome): boolean {
  return (
    outcome.kind === 'error' &&
    outcome.error.includes(String(rpcCode.headerMismatch)) &&
    new JsonObject(outcome.error).value('code') === rpcCode.headerMismatch
  )
}

export function resultOutcome(value: unknown): Outcome {
  return { kind: 'result', result: Buffer.from(JSON.stringify(value)) }
}

/** Returns a refusal as a tool result that a model can read. Records the denial for the audit log. */
export function refusedOutcome(denial: string, { code, message, data }: RefusalContent): Outcome {
  annotateDenial(denial)
  const result = { content: [{ type: 'text', text: message }], structuredContent: { code, message, data } }
  return { kind: 'result', result: Buffer.from(JSON.stringify({ ...result, isError: true })), denial }
}

interface RefusalContent {
  readonly code: number
  readonly message: string
  readonly data: unknown
}

/**
 * Returns the result of a failed tool call. Instead of a protocol error, the result contains text that a model can
 * read.
 */
export function toolErrorOutcome(text: string, more: readonly TextContent[] = []): Outcome {
  return resultOutcome({ content: [{ type: 'text', text }, ...more], isError: true })
}

export interface TextContent {
  readonly type: 'text'
  readonly text: string
}

/**
 * Returns the audit outcome for a call that a script or the console started inside this server. `outcome` is undefined
 * if the call failed with `failure`.
 */
export function auditOutcome(outcome: Outcome | undefined, failure: unknown): AuditOutcome {
  if (failure instanceof GatehouseError && failure.code === 'FORBIDDEN') return 'denied'
  if (!outcome) return 'error'
  return outcome.kind === 'result' && !isToolError(outcome.result) ? 'success' : 'application_error'
}
