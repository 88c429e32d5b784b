/**
 * Runs the policy commands against an external decision point. The decision point is called only with --ask, because
 * its operator sees the claims and arguments in the queries. Without --ask, the commands report no decision.
 */
import { Option } from 'commander'
import { explainExternal, type PolicyQuestion, type TriedPoint, tryPoint } from '../../policy/index.ts'
import { exitCode } from '../../toolkit/terminal/output.ts'
import type { PolicySource } from '../../toolkit/local/servers.ts'

type ExternalPoint = Extract<PolicySource, { kind: 'point' }>['about']

export function askOption(): Option {
  return new Option(
    '--ask',
    'query the external decision point, if the server uses one; it receives the claims and arguments',
  ).default(false)
}

/**
 * Runs `work` with the decision point, or with undefined if `ask` is not set, then closes the decision point. Rejects
 * when `work` rejects, and rejects with INVALID_CONFIG when the decision point cannot be used.
 */
export async function withPoint<T>(
  about: ExternalPoint,
  ask: boolean,
  work: (point: TriedPoint | undefined) => Promise<T>,
): Promise<T> {
  if (!ask) return work(undefined)
  const point = tryPoint(about)
  try {
    return await work(point)
  } finally {
    await point.close()
  }
}

export interface PointExplanation {
  readonly decision: 'elsewhere' | 'allow' | 'deny' | 'none'
  readonly type: string
  readonly url: string
  readonly question: string
  /** Reason why there is no decision. */
  readonly failure?: string
}

/** Rejects with INVALID_PARAMS when the arguments are not an object. */
export async function explainAtPoint(
  about: ExternalPoint,
  ask: boolean,
  question: PolicyQuestion,
): Promise<PointExplanation> {
  const explained = { type: about.point.type, ...(await explainExternal(about, question)) }
  return withPoint(about, ask, async (point) =>
    point ? { ...explained, ...(await point.ask(question)) } : { ...explained, decision: 'elsewhere' },
  )
}

export function pointExplanationText({ decision, type, url, question, failure }: PointExplanation): string {
  const verdict = {
    elsewhere: `decided elsewhere: ${url} (${type}); use --ask to query it`,
    allow: `allowed by ${type}: ${url}`,
    deny: `denied by ${type}: ${url}`,
    none: `no decision: ${failure}: ${url} (${type})`,
  }[decision]
  return `${verdict}\n  the question: ${question}`
}

export function pointExitCode({ decision }: PointExplanation): number {
  return { allow: exitCode.ok, deny: exitCode.failed, none: exitCode.usage, elsewhere: exitCode.usage }[
    decision
  ]
}
