/**
 * How questions and answers of an external decision point look on the wire. Whatever asks, holds and counts them is the
 * same for every format.
 */
import type { AccessRequest } from '../requests.ts'
import type { Principal } from './question.ts'

/** One question. `text` is all that a decision can depend on, so it is what decisions are held by. */
export interface Question {
  readonly text: string
  /** Members of `text` that all questions about one list share, and those that are its own; for formats with a batch. */
  readonly shared?: string
  readonly own?: string
}

export interface Asking {
  /** Stands in the name of each resource. */
  readonly server: string
  readonly principal: Principal
}

export interface WireFormat {
  /** Behind the base URL. */
  readonly path: string
  /** The member of the response that is the decision. */
  readonly member: string
  /** Rejects with INVALID_PARAMS when arguments are told that two readers could read differently. */
  question(subject: Asking, request: AccessRequest): Promise<Question>
  /** Undefined: items of lists are asked about one by one. */
  readonly batch?: BatchFormat
}

export interface BatchFormat {
  readonly path: string
  /** Questions in one request. */
  readonly most: number
  /** JSON text; at least one question, all with the same shared part. */
  body(questions: readonly Question[]): string
  /** One for each question, in their order; undefined where there is no decision. Throws DecisionFailure. */
  answers(body: Buffer, count: number): readonly (boolean | undefined)[]
}
