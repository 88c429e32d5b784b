/**
 * Tests policies against expected decisions about calls and lists.
 * Source: docs/guides/policies.md.
 */
import { type AuthorizerConfig, makeAuthorizer } from './authorizer.ts'
import { asked, type PolicyQuestion, type PolicySet } from './explain.ts'
import { readPolicySet } from './cedar/policies.ts'
import type { TriedPoint } from './external/inquire.ts'

export interface PolicyTest {
  readonly name: string
  readonly questions: readonly {
    readonly question: PolicyQuestion
    readonly expect: 'allow' | 'deny'
    /** Ids of policies that must be among the determining policies. */
    readonly because?: readonly string[] | undefined
    /** Number of policies that are expected to fail during evaluation. */
    readonly errors?: number | undefined
  }[]
}

export interface PolicyTestResult {
  readonly name: string
  /** One line per unmet expectation. */
  readonly failures: readonly string[]
  /** URL of the configured decision point, if the test did not query it. */
  readonly elsewhere?: string | undefined
}

export interface PolicyTestRun {
  readonly results: readonly PolicyTestResult[]
  /** Ids of policies that did not determine any decision in the tests. */
  readonly idle: readonly string[]
}

/** The decision on a test query. */
interface Decided {
  readonly decision: 'allow' | 'deny' | 'none'
  /** Ids of the determining policies. */
  readonly reason: readonly string[]
  readonly errors: readonly string[]
}

/**
 * Rejects with an INVALID_CONFIG error that lists every invalid policy, and with INVALID_PARAMS when the arguments are
 * not an object.
 */
export async function runPolicyTests(
  { serverName, ...config }: PolicySet,
  tests: readonly PolicyTest[],
): Promise<PolicyTestRun> {
  const authorizer = makeAuthorizer(config, { serverName })
  const met = new Set<string>()
  const results = await runTests(tests, async (question) => {
    const { subject, request } = await asked(authorizer, question)
    const { decision, reason, errors } = authorizer.verdict(subject, request)
    for (const id of reason) met.add(id)
    return { decision: decision === 'permitted' ? 'allow' : 'deny', reason, errors }
  })
  return { results, idle: policyIds(config).filter((id) => !met.has(id)) }
}

/**
 * Runs the tests against an external decision point. Without `point`, the tests send no queries and get no decisions.
 * Rejects with INVALID_PARAMS when the arguments are not an object.
 */
export async function runPointTests(
  url: string,
  point: TriedPoint | undefined,
  tests: readonly PolicyTest[],
): Promise<PolicyTestRun> {
  if (!point) return { results: tests.map(({ name }) => ({ name, failures: [], elsewhere: url })), idle: [] }
  const results = await runTests(tests, async (question) => {
    const reply = await point.ask(question)
    if (reply.decision === 'none')
      return { decision: 'none', reason: [], errors: [`${point.type}: ${reply.failure}`] }
    return { decision: reply.decision, reason: [point.type], errors: [] }
  })
  return { results, idle: [] }
}

async function runTests(
  tests: readonly PolicyTest[],
  decide: (question: PolicyQuestion) => Promise<Decided>,
): Promise<PolicyTestResult[]> {
  const results: PolicyTestResult[] = []
  for (const { name, questions } of tests) {
    const failures: string[] = []
    for (const expected of questions)
      failures.push(...unmetExpectations(expected, await decide(expected.question)))
    results.push({ name, failures })
  }
  return results
}

/** Returns one line per unmet expectation. */
function unmetExpectations(
  { question, expect, because = [], errors }: PolicyTest['questions'][number],
  decided: Decided,
): string[] {
  const what = `${question.action} ${question.id}`
  const reasons = decided.reason.join(', ') || 'no policy'
  const failed = decided.errors.join(', ') || 'none'
  const was = decided.decision === 'none' ? `no decision: ${failed}` : `was ${decided.decision} by ${reasons}`
  const absent = because.filter((id) => !decided.reason.includes(id))
  return [
    ...(decided.decision === expect ? [] : [`${what}: expected ${expect}, ${was}`]),
    ...(absent.length > 0
      ? [`${what}: expected the determining policies to include ${absent.join(', ')}, found ${reasons}`]
      : []),
    ...(errors !== undefined && decided.errors.length !== errors
      ? [`${what}: expected ${errors} policies to fail, but ${decided.errors.length} failed: ${failed}`]
      : []),
  ]
}

/** Returns the ids of all valid policies in a configuration. */
export function policyIds({ policies }: AuthorizerConfig): string[] {
  return readPolicySet(policies ?? []).policies.map(({ id }) => id)
}
