/** A tool call that comes from no client but from a page of Gatehouse: who makes it, and who sees and is asked what. */
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
  /** Called with what the policies decided. */
  readonly decided: (record: PolicyRecord) => void
  /** Called with the backend that the call goes to. */
  readonly routed: (backend: string) => void
  /** Asks whoever made the call. */
  readonly ask: (request: Ask, signal: AbortSignal) => Promise<AskReply>
}

/** Raw JSON: the result of the tool, or the error object of the backend. */
export interface DirectResult {
  readonly kind: 'result' | 'error'
  readonly json: Buffer
  /** Why the gateway refused the call, as a code, where its result says so. */
  readonly denial?: string | undefined
}
