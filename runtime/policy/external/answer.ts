/** Reads decisions out of responses. */
import { JsonObject } from '../../mcp/index.ts'
import { DecisionFailure } from '../remote/json-post.ts'

/** No JSON, or a member that is missing, doubled or no boolean, is a failure, never a decision. */
export function readDecision(body: Buffer, member: string): boolean {
  try {
    const value = new JsonObject(body).value(member)
    if (typeof value === 'boolean') return value
  } catch (cause) {
    throw new DecisionFailure('malformed', 'the response of the decision point is no JSON object', { cause })
  }
  throw new DecisionFailure('malformed', `the response of the decision point has no boolean ${member}`)
}
