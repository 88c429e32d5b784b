/**
 * Queries an external decision point on behalf of an operator, and only on explicit request, because the operator of
 * the decision point sees the queries.
 */
import { silentLog } from '../../net/index.ts'
import type { PolicyQuestion } from '../explain.ts'
import { DecisionFailure, type FailureReason } from '../remote/json-post.ts'
import { questionOf, type RuntimePoint } from './explain.ts'
import { AskedPoint } from './point.ts'

export type PointReply =
  | { readonly decision: 'allow' | 'deny' }
  /** Reason why the query failed. */
  | { readonly decision: 'none'; readonly failure: FailureReason }

export interface TriedPoint {
  readonly type: RuntimePoint['point']['type']
  readonly url: string
  /** Rejects with INVALID_PARAMS when the arguments are not an object. */
  ask(question: PolicyQuestion): Promise<PointReply>
  close(): Promise<void>
}

/** Throws INVALID_CONFIG when a file in the settings cannot be used. */
export function tryPoint(about: RuntimePoint): TriedPoint {
  const point = new AskedPoint(about.point, () => {}, silentLog)
  return {
    type: about.point.type,
    url: about.point.settings.http.url,
    async ask(question) {
      const text = await questionOf(about, question)
      try {
        return { decision: (await point.decide(text, 'operator')) ? 'allow' : 'deny' }
      } catch (error) {
        if (!(error instanceof DecisionFailure)) throw error
        return { decision: 'none', failure: error.reason }
      }
    },
    close: () => point.close(),
  }
}
