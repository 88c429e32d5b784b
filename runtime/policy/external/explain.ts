/** What an external decision point would be asked, for operators. Nothing is asked. */
import type { RuntimeDecisionPoint } from '../../../schemas/index.ts'
import type { PolicyQuestion } from '../explain.ts'
import { principalOf, questionText } from './question.ts'

export interface RuntimePoint {
  readonly serverName: string
  readonly settings: RuntimeDecisionPoint
}

/** Rejects with INVALID_PARAMS when arguments are no object. */
export async function explainExternal(
  { serverName, settings }: RuntimePoint,
  { claims, subject, arguments: args, ...request }: PolicyQuestion,
): Promise<{ readonly url: string; readonly question: string }> {
  const principal = principalOf(
    subject === undefined ? claims : { sub: subject, ...claims },
    settings.claimMapping,
  )
  const given = args === undefined ? undefined : Buffer.from(JSON.stringify(args))
  const question = await questionText(serverName, principal, { ...request, arguments: given }, settings)
  return { url: `${settings.http.url.replace(/\/+$/, '')}/decision`, question }
}
