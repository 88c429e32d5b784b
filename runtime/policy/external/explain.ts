/** What an external decision point would be asked, for operators. Nothing is asked. */
import type { PolicyQuestion } from '../explain.ts'
import { endpoint, type ExternalPoint, formatOf } from './formats.ts'
import { principalOf } from './question.ts'

export interface RuntimePoint {
  readonly serverName: string
  readonly point: ExternalPoint
}

/** Rejects with INVALID_PARAMS when arguments are no object. */
export async function explainExternal(
  { serverName, point }: RuntimePoint,
  { claims, subject, arguments: args, ...request }: PolicyQuestion,
): Promise<{ readonly url: string; readonly question: string }> {
  const principal = principalOf(
    subject === undefined ? claims : { sub: subject, ...claims },
    point.settings.claimMapping,
  )
  const given = args === undefined ? undefined : Buffer.from(JSON.stringify(args))
  const format = formatOf(point)
  const { text } = await format.question({ server: serverName, principal }, { ...request, arguments: given })
  return { url: endpoint(point, format.path), question: text }
}
