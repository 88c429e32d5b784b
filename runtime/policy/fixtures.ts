/**
 * Runs what somebody expects of policies against the policies themselves: the decisions of calls, and what lists show.
 * Source: docs/guides/policies.md.
 */
import { type AuthorizerConfig, makeAuthorizer } from './authorizer.ts'
import { asked, type PolicyQuestion, type PolicySet } from './explain.ts'
import { readPolicySet } from './cedar/policies.ts'

export interface PolicyTest {
  readonly name: string
  readonly questions: readonly {
    readonly question: PolicyQuestion
    readonly expect: 'allow' | 'deny'
    /** Ids of policies that must be among those that determine the decision. */
    readonly because?: readonly string[] | undefined
    /** How many policies must fail. */
    readonly errors?: number | undefined
  }[]
}

export interface PolicyTestResult {
  readonly name: string
  /** One line for each expectation that is not met. */
  readonly failures: readonly string[]
}

export interface PolicyTestRun {
  readonly results: readonly PolicyTestResult[]
  /** Ids of policies that determined no decision of any test. */
  readonly idle: readonly string[]
}

/** Rejects with INVALID_CONFIG naming every policy that cannot be used, and with INVALID_PARAMS for arguments that are no object. */
export async function runPolicyTests(
  { serverName, ...config }: PolicySet,
  tests: readonly PolicyTest[],
): Promise<PolicyTestRun> {
  const authorizer = makeAuthorizer(config, { serverName })
  const met = new Set<string>()
  const results: PolicyTestResult[] = []
  for (const { name, questions } of tests) {
    const failures: string[] = []
    for (const { question, expect, because = [], errors } of questions) {
      const { subject, request } = await asked(authorizer, question)
      const verdict = authorizer.verdict(subject, request)
      for (const id of verdict.reason) met.add(id)
      const decision = verdict.decision === 'permitted' ? 'allow' : 'deny'
      const what = `${question.action} ${question.id}`
      const reasons = verdict.reason.join(', ') || 'no policy'
      if (decision !== expect) failures.push(`${what}: expected ${expect}, was ${decision} by ${reasons}`)
      const absent = because.filter((id) => !verdict.reason.includes(id))
      if (absent.length > 0)
        failures.push(`${what}: expected because of ${absent.join(', ')}, was because of ${reasons}`)
      if (errors !== undefined && verdict.errors.length !== errors)
        failures.push(
          `${what}: expected ${errors} policies to fail, ${verdict.errors.length} did: ${verdict.errors.join(', ') || 'none'}`,
        )
    }
    results.push({ name, failures })
  }
  return { results, idle: policyIds(config).filter((id) => !met.has(id)) }
}

/** Ids of all policies of a configuration that can be used. */
export function policyIds({ policies }: AuthorizerConfig): string[] {
  return readPolicySet(policies ?? []).policies.map(({ id }) => id)
}
