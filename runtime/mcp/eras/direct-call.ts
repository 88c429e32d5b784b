/**
 * A tool call from a Gatehouse page instead of a client. The call has handlers for notifications and for requests for
 * input.
 */
import type { Caller } from '../../net/index.ts'
import type { PolicyRecord } from '../../observe/index.ts'
import type { Era } from '../era.ts'
import type { Ask, AskReply } from './questions.ts'

export interface DirectCall {
  readonly caller: Caller
  readonly tool: string
  /** Arguments as a raw JSON object. */
  readonly toolArguments: Buffer
  readonly era: Era
  readonly signal: AbortSignal
  /** Receives the raw params of progress notifications. */
  readonly progress: (params: Buffer) => void
  readonly log: (params: Buffer) => void
  /** Receives the policy decision. */
  readonly decided: (record: PolicyRecord) => void
  /** Receives the name of the backend that handles the call. */
  readonly routed: (backend: string) => void
  /** Asks the user who started the call. */
  readonly ask: (request: Ask, signal: AbortSignal) => Promise<AskReply>
}

/** The tool's result or the backend's error object, as raw JSON. */
export interface DirectResult {
  readonly kind: 'result' | 'error'
  readonly json: Buffer
  /** The gateway's rejection code, if the result contains one. */
  readonly denial?: string | undefined
}
