/** Parses decisions from responses. */
import { JsonObject } from '../../mcp/index.ts'
import { DecisionFailure } from '../remote/json-post.ts'

/**
 * Returns the decision. Invalid JSON, or a missing, duplicate or non-boolean member, is a failure and never a decision.
 */
export function readDecision(body: Buffer, member: string): boolean {
  try {
    const value = new JsonObject(body).value(member)
    if (typeof value === 'boolean') return value
  } catch (cause) {
    throw new DecisionFailure('malformed', 'the response of the decision point is not a JSON object', {
      cause,
    })
  }
  throw new DecisionFailure('malformed', `the response of the decision point has no boolean member ${member}`)
}
