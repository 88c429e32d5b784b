/** The ways in which an operation ends, and results that Gatehouse itself returns. */
import { JsonObject, type PassedMembers, rpcCode } from '../../mcp/index.ts'
import { annotateDenial } from '../../observe/index.ts'

/** How an operation ended. Errors of the gateway itself are thrown as GatehouseError instead. */
export type Outcome =
  | {
      readonly kind: 'result'
      readonly result: Buffer
      /** What has gone on to the client already: large members, for which something small stands in `result`. */
      readonly passed?: PassedMembers | undefined
      /** Why the gateway refused the call, as a code, where it tells that as a result of the tool. */
      readonly denial?: string
    }
  /** A JSON-RPC error object of the backend, passed on as it is. */
  | { readonly kind: 'error'; readonly error: Buffer }
  /** The stateless era's "ask again with these answers": a raw InputRequiredResult. */
  | {
      readonly kind: 'input'
      readonly result: Buffer
      /** Identity of the backend that asks; see `Operation.stateFor`. */
      readonly backend?: string | undefined
    }

/** Bytes of what a backend has answered. */
export function sizeOf(outcome: Outcome): number {
  if (outcome.kind === 'error') return outcome.error.length
  return outcome.result.length + ((outcome.kind === 'result' && outcome.passed?.bytes) || 0)
}

/** The backend says that the headers do not fit the arguments. */
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

/** A refusal that a model can read: it looks like a result of the tool. */
export function refusedOutcome(denial: string, { code, message, data }: RefusalTold): Outcome {
  annotateDenial(denial)
  const told = { content: [{ type: 'text', text: message }], structuredContent: { code, message, data } }
  return { kind: 'result', result: Buffer.from(JSON.stringify({ ...told, isError: true })), denial }
}

interface RefusalTold {
  readonly code: number
  readonly message: string
  readonly data: unknown
}

/** The result of a tool that failed: text that a model can read, not an error of the protocol. */
export function toolErrorOutcome(text: string, more: readonly TextContent[] = []): Outcome {
  return resultOutcome({ content: [{ type: 'text', text }, ...more], isError: true })
}

export interface TextContent {
  readonly type: 'text'
  readonly text: string
}
