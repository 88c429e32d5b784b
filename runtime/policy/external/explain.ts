/** Shows operators the query that an external decision point would receive, without sending it. */
import type { PolicyQuestion } from '../explain.ts'
import type { Question } from './format.ts'
import { endpoint, type ExternalPoint, formatOf } from './formats.ts'
import { principalOf } from './question.ts'

export interface RuntimePoint {
  readonly serverName: string
  readonly point: ExternalPoint
}

/** Returns the query. Rejects with INVALID_PARAMS when the arguments are not an object. */
export async function explainExternal(
  about: RuntimePoint,
  question: PolicyQuestion,
): Promise<{ readonly url: string; readonly question: string }> {
  const { text } = await questionOf(about, question)
  return { url: endpoint(about.point, formatOf(about.point).path), question: text }
}

/** Returns the query for a client's request. Rejects with INVALID_PARAMS when the arguments are not an object. */
export async function questionOf(
  { serverName, point }: RuntimePoint,
  { claims, subject, arguments: args, ...request }: PolicyQuestion,
): Promise<Question> {
  const named = subject === undefined ? claims : { sub: subject, ...claims }
  const principal = principalOf(named, point.settings.claimMapping)
  const given = args === undefined || args === null ? undefined : Buffer.from(JSON.stringify(args))
  return formatOf(point).question({ server: serverName, principal }, { ...request, arguments: given })
}
