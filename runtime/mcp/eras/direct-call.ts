/** A tool call from a Gatehouse page instead of a client, with the receivers of its notifications and questions. */
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
  /** Raw params of notifications. */
  readonly progress: (params: Buffer) => void
  readonly log: (params: Buffer) => void
  /** Receives the policy decision. */
  readonly decided: (record: PolicyRecord) => void
  /** Receives the name of the backend that handles the call. */
  readonly routed: (backend: string) => void
  /** Asks the caller. */
  readonly ask: (request: Ask, signal: AbortSignal) => Promise<AskReply>
}

/** Raw JSON: the result of the tool, or the error object of the backend. */
export interface DirectResult {
  readonly kind: 'result' | 'error'
  readonly json: Buffer
  /** Code of the gateway's rejection, when the result contains one. */
  readonly denial?: string | undefined
}
