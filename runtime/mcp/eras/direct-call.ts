/** A tool call from a Gatehouse page instead of a client, with handlers for its notifications and questions. */
import type { Caller } from '../../net/index.ts'
import type { PolicyRecord } from '../../observe/index.ts'
import type { Era } from '../era.ts'
import type { Ask, AskReply } from './questions.ts'

export interface DirectCall {
  readonly caller: Caller
  readonly tool: string
  /** Raw JSON object. */
  readonly toolArguments: Buffer
  readonly era: Era
  readonly signal: AbortSignal
  /** Receive the raw params of notifications. */
  readonly progress: (params: Buffer) => void
  readonly log: (params: Buffer) => void
  /** Receives the policy decision. */
  readonly decided: (record: PolicyRecord) => void
  /** Receives the name of the backend that handles the call. */
  readonly routed: (backend: string) => void
  /** Asks the caller. */
  readonly ask: (request: Ask, signal: AbortSignal) => Promise<AskReply>
}

/** Raw JSON: the tool's result or the backend's error object. */
export interface DirectResult {
  readonly kind: 'result' | 'error'
  readonly json: Buffer
  /** The gateway's rejection code, if the result contains one. */
  readonly denial?: string | undefined
}
