/**
 * Evaluates policies for the decisions recorded in the audit log, and reports which decisions would change for which
 * callers.
 *
 * The data in a line depends on the audit settings (`audit.policyInputs`). A policy that might apply and reads missing
 * data is uncertain. Other policies may still decide (a matching forbid, or a permit that no uncertain policy can
 * forbid). Otherwise, the line is inconclusive, because the replay never guesses a decision.
 * Source: docs/guides/policies.md; docs/guides/observability.md, "Audit log".
 */
import { setImmediate } from 'node:timers/promises'
import { LRUCache } from 'lru-cache'
import { originTypes, tokenFacts } from '../../schemas/cedar/index.ts'
import { type Authorizer, makeAuthorizer, readsOrigin } from './authorizer.ts'
import { mayApply, type Policy, readPolicySet } from './cedar/policies.ts'
import { asked, type PolicySet } from './explain.ts'
import { policyIds } from './fixtures.ts'
import type { InputsMode } from './inputs.ts'
import { actions, hintNames } from './requests.ts'
import type { RecordedLine } from './recorded.ts'
import { type Replay, ReplayTally } from './replay-tally.ts'
import type { TokenFact } from './subject.ts'
import { undecided, type PolicyVerdict } from './verdict.ts'

/** Maximum number of cached authorizers, each excluding a set of uncertain policies. */
const maxVariants = 32
/** Replaces an omitted policy, so the remaining policies keep their ids. */
const neverMatches = 'forbid(principal, action, resource) when { false };'
const turnMs = 20
/** Claim that contains the recorded groups. */
const groupClaim = 'gatehouse:groups'

/** Replays a log. Rejects with an INVALID_CONFIG error that lists every invalid policy. */
export async function replayDecisions(
  { serverName, ...config }: PolicySet,
  lines: Iterable<string> | AsyncIterable<string>,
): Promise<Replay> {
  const asks = new Replayer({ serverName, ...config })
  const tally = new ReplayTally()
  const met = new Set<string>()
  let began = performance.now()
  for await (const text of lines) {
    const line = tally.read(text)
    if (!line) continue
    const { verdict, lacks } = await asks.decide(forPolicies(line))
    if (verdict) {
      for (const id of verdict.reason) met.add(id)
      tally.decided(line, isAllowed(verdict, line) ? 'allow' : 'deny', verdict.reason)
    } else tally.lacks(lacks)
    if (performance.now() - began < turnMs) continue
    await setImmediate()
    began = performance.now()
  }
  return tally.result(policyIds(config).filter((id) => !met.has(id)))
}

/** The claims sent to a decision point are not the claims that policies read, unless all claims are recorded. */
function forPolicies(line: RecordedLine): RecordedLine {
  return line.elsewhere && line.inputs?.mode === 'read' ? { ...line, inputs: undefined } : line
}

/** The gateway's own tools are permitted without a policy, unless a policy forbids them. */
function isAllowed({ decision }: PolicyVerdict, line: RecordedLine): boolean {
  return (
    decision === 'permitted' || (decision === 'unmentioned' && line.decision === 'allow' && line.isUnreasoned)
  )
}

class Replayer {
  readonly #set: PolicySet
  readonly #policies: readonly Policy[]
  readonly #texts: readonly string[]
  readonly #variants = new LRUCache<string, Authorizer>({ max: maxVariants })

  constructor(set: PolicySet) {
    this.#set = set
    this.#texts = set.policies ?? []
    this.#policies = readPolicySet(this.#texts).policies
    // Checks the policies before the first line, and throws for invalid policies.
    this.#authorizerWithout(new Set(), 'read')
  }

  async decide(
    line: RecordedLine,
  ): Promise<{ readonly verdict?: PolicyVerdict; readonly lacks: readonly string[] }> {
    // Skips a line that is denied regardless of policies.
    if (line.inputs?.denyAll) return { verdict: undecided, lacks: [] }
    // Skips a line that was denied because of a failure, because there is no decision to compare with.
    if (line.elsewhere === 'failed') return { lacks: ['a decision'] }
    const uncertain = new Map<string, string>()
    for (const policy of this.#policies) {
      const lack = mayApplyTo(policy, line) ? this.#missingDataOf(policy, line) : undefined
      if (lack !== undefined) uncertain.set(policy.id, lack)
    }
    // A string may contain several policies, which can only be omitted together.
    const texts = new Set([...uncertain.keys()].map(textIndex))
    const out = this.#policies.filter(({ id }) => texts.has(textIndex(id)))
    const authorizer = this.#authorizerWithout(texts, line.inputs?.mode ?? 'read')
    const verdict = await verdictOf(authorizer, line)
    const lacks = [...new Set(uncertain.values())]
    if (out.length === 0) return { verdict, lacks }
    const isCertain =
      (verdict.decision === 'forbidden' && verdict.errors.length === 0) ||
      (verdict.decision === 'permitted' && !out.some(({ effect }) => effect === 'forbid')) ||
      (verdict.decision === 'unmentioned' &&
        !out.some(({ effect }) => effect === 'permit') &&
        !line.isUnreasoned)
    return isCertain ? { verdict, lacks } : { lacks }
  }

  /** Returns the missing data that a policy reads; undefined when the line is sufficient. */
  #missingDataOf(policy: Policy, { inputs, request }: RecordedLine): string | undefined {
    const { reads, scope } = policy
    if (request.origin === undefined && readsOrigin(policy)) return 'where it comes from'
    const hint = hintNames.find((name) => reads.attributes.has(name))
    if (hint !== undefined && request.action === 'call_tool' && !inputs?.hints) return hint
    const isRead = (name: TokenFact): boolean =>
      name === 'actor'
        ? reads.wholeContext || reads.attributes.has(name)
        : reads.principalAttributes.has(name)
    const fact = tokenFacts.find((name) => isRead(name) && !Object.hasOwn(inputs?.principal ?? {}, name))
    if (fact !== undefined) return fact === 'actor' ? 'context.actor' : `principal.${fact}`
    if (inputs?.mode === 'all') {
      if (!inputs.claims) return 'claims'
      const readsArguments =
        reads.wholeContext || [...reads.attributes].some((name) => name.startsWith('arg_'))
      return inputs.arguments === null && readsArguments ? 'arguments' : undefined
    }
    if (reads.wholeContext) return 'all claims and arguments'
    const recorded = inputs?.attributes ?? {}
    const missing = [...reads.attributes].find(
      (name) => /^(?:claim_|arg_)/.test(name) && !Object.hasOwn(recorded, name),
    )
    if (missing !== undefined) return missing
    if (inputs) return undefined
    const { principal } = scope
    const readsGroups =
      principal.op === 'in' ||
      (principal.op === 'is' && 'in' in principal) ||
      reads.computedEntities ||
      [...reads.types].some((type) => !knownTypes.has(type))
    return readsGroups ? 'groups' : undefined
  }

  #authorizerWithout(texts: ReadonlySet<number>, mode: InputsMode): Authorizer {
    const key = `${mode} ${[...texts].join()}`
    const known = this.#variants.get(key)
    if (known) return known
    const { serverName, ...config } = this.#set
    const policies = this.#texts.map((text, index) => (texts.has(index) ? neverMatches : text))
    const { roleClaimName: _role, ...withoutRoles } = config
    const set = mode === 'all' ? config : { ...withoutRoles, groupClaimName: groupClaim }
    const made = makeAuthorizer({ ...set, policies }, { serverName })
    this.#variants.set(key, made)
    return made
  }
}

/** Entity types that every line contains. */
const knownTypes: ReadonlySet<string> = new Set([
  'Action',
  'Client',
  'MCP',
  'Prompt',
  'Resource',
  'Tool',
  ...originTypes,
])

function textIndex(id: string): number {
  return Number(/^policies\[(\d+)\]/.exec(id)?.[1])
}

/** Actions can have configured parents, so only certain kinds of mismatch exclude a policy. */
function mayApplyTo(policy: Policy, { principal, request }: RecordedLine): boolean {
  const type = actions[request.action].entityType
  const action = policy.scope.action
  const isOther = action.op === '==' && !JSON.stringify(action).includes(`"${request.action}"`)
  const anyAction = { ...policy, scope: { ...policy.scope, action: { op: 'All' } as const } }
  return (
    !isOther &&
    mayApply(anyAction, {
      principal: { type: 'Client', id: principal },
      actions: new Set(),
      resource: { type, id: request.id },
    })
  )
}

async function verdictOf(
  authorizer: Authorizer,
  { principal, inputs, request }: RecordedLine,
): Promise<PolicyVerdict> {
  const { hints } = inputs ?? {}
  const about = { ...request, ...(hints ? { hints } : {}), principal: inputs?.principal }
  const question =
    inputs?.mode === 'all'
      ? { ...about, claims: inputs.claims ?? {}, subject: principal, arguments: inputs.arguments }
      : { ...about, ...fromAttributes(principal, inputs?.groups ?? [], inputs?.attributes ?? {}) }
  const { subject, request: asking } = await asked(authorizer, question)
  return authorizer.verdict(subject, asking)
}

/** Converts recorded attributes back to claims and arguments. */
function fromAttributes(
  sub: string,
  groups: readonly string[],
  attributes: Readonly<Record<string, unknown>>,
): { readonly claims: Readonly<Record<string, unknown>>; readonly arguments: unknown } {
  const given = Object.entries(attributes).filter(([, value]) => value !== null)
  const under = (prefix: string): Record<string, unknown> =>
    Object.fromEntries(
      given
        .filter(([name]) => name.startsWith(prefix))
        .map(([name, value]) => [name.slice(prefix.length), value]),
    )
  return { claims: { ...under('claim_'), sub, [groupClaim]: groups }, arguments: under('arg_') }
}
