/**
 * The policy commands where an external decision point decides: it is asked with --ask only, because whoever runs it sees the
 * claims and arguments of the questions. Without it nothing is said to be allowed, denied or changed.
 */
import { Option } from 'commander'
import { explainExternal, type PolicyQuestion, type TriedPoint, tryPoint } from '../../policy/index.ts'
import { exitCode } from '../../toolkit/terminal/output.ts'
import type { PolicySource } from '../../toolkit/local/servers.ts'

type Elsewhere = Extract<PolicySource, { kind: 'point' }>['about']

export function askOption(): Option {
  return new Option(
    '--ask',
    'where an external decision point decides: ask it. It gets the claims and arguments of the questions',
  ).default(false)
}

/** Closes the decision point afterwards. Rejects as `work` does, and with INVALID_CONFIG when it cannot be asked. */
export async function withPoint<T>(
  about: Elsewhere,
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

export interface ElsewhereExplanation {
  readonly decision: 'elsewhere' | 'allow' | 'deny' | 'none'
  readonly type: string
  readonly url: string
  readonly question: string
  /** Why there was no decision. */
  readonly failure?: string
}

/** Rejects with INVALID_PARAMS when arguments are no object. */
export async function explainElsewhere(
  about: Elsewhere,
  ask: boolean,
  question: PolicyQuestion,
): Promise<ElsewhereExplanation> {
  const explained = { type: about.point.type, ...(await explainExternal(about, question)) }
  return withPoint(about, ask, async (point) =>
    point ? { ...explained, ...(await point.ask(question)) } : { ...explained, decision: 'elsewhere' },
  )
}

export function elsewhereText({ decision, type, url, question, failure }: ElsewhereExplanation): string {
  const verdict = {
    elsewhere: `decided elsewhere: ${url} (${type}); --ask asks it`,
    allow: `allowed by ${type}: ${url}`,
    deny: `denied by ${type}: ${url}`,
    none: `no decision: ${failure}: ${url} (${type})`,
  }[decision]
  return `${verdict}\n  the question: ${question}`
}

export function elsewhereCode({ decision }: ElsewhereExplanation): number {
  return { allow: exitCode.ok, deny: exitCode.failed, none: exitCode.usage, elsewhere: exitCode.usage }[
    decision
  ]
}
