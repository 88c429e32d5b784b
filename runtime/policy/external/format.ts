/**
 * The wire format for an external decision point's queries and responses. The other components are independent of the
 * format.
 */
import type { AccessRequest } from '../requests.ts'
import type { Principal } from './question.ts'
import { JsonObject } from '../../mcp/index.ts'
import { DecisionFailure } from '../remote/json-post.ts'

/** A query. `text` is the cache key of the decision and contains all data that the decision can depend on. */
export interface Question {
  readonly text: string
  /**
   * For formats with batches: the members of `text` that all queries about a list share, and the members specific to
   * this query.
   */
  readonly shared?: string
  readonly own?: string
}

export interface QueryContext {
  /** Part of each resource's name. */
  readonly server: string
  readonly principal: Principal
}

export interface WireFormat {
  /** The path to append to the base URL. */
  readonly path: string
  /** Member of the response that contains the decision. */
  readonly member: string
  /** Builds a query. Rejects with INVALID_PARAMS for arguments that two parsers could read differently. */
  question(subject: QueryContext, request: AccessRequest): Promise<Question>
  /** Batch format; undefined when the decision point decides list items one by one. */
  readonly batch?: BatchFormat
}

export interface BatchFormat {
  readonly path: string
  /** Maximum number of queries per request. */
  readonly most: number
  /** Returns JSON text. Requires at least one query, all with the same shared part. */
  body(questions: readonly Question[]): string
  /** Returns one decision per query, in order; a missing decision is undefined. Throws DecisionFailure. */
  answers(body: Buffer, count: number): readonly (boolean | undefined)[]
}

/**
 * Returns the decision. Invalid JSON, or a missing, duplicate or non-boolean member, is a failure, never a decision.
 */
export function readDecision(body: Buffer, member: string): boolean {
  try {
    const value = new JsonObject(body).value(member)
    if (typeof value === 'boolean') return value
  } catch (cause) {
    throw new DecisionFailure('malformed', 'the response from the decision point is not a JSON object', {
      cause,
    })
  }
  throw new DecisionFailure(
    'malformed',
    `the response from the decision point has no boolean member ${member}`,
  )
}
