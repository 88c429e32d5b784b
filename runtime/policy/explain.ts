/**
 * Explains a decision. Reports the determining policies and, for every other policy, the first part of its scope or
 * condition that does not hold. For operators only.
 *
 * The engine reports the matching policies, but no reasons for other policies. The explanation therefore evaluates
 * every part of a policy as a separate policy, in a few batches of bounded size, and yields to other work between
 * batches.
 * Source: docs/guides/policies.md; Cedar, JSON policy format.
 */
import { setImmediate } from 'node:timers/promises'
import {
  type AuthorizationCall,
  callEngine,
  EngineFailure,
  type PolicyJson,
} from '../../schemas/cedar/index.ts'
import { type Caller, callerFacts, makeCaller } from '../net/index.ts'
import { attributesIn, type Authorizer, type AuthorizerConfig, makeAuthorizer } from './authorizer.ts'
import type { Policy } from './cedar/policies.ts'
import { mayApply } from './cedar/policies.ts'
import type { RecordedFacts } from './inputs.ts'
import type { AccessRequest, Action } from './requests.ts'
import type { PolicySubject } from './subject.ts'
import type { CedarDecision } from './verdict.ts'

/** Maximum number of policies to explain. */
const maxCandidates = 200
/** Maximum number of parts per policy. */
const maxParts = 64
/** Maximum number of parts per event loop turn. */
const partsAtOnce = 48
const maxText = 300

export interface PolicyExplanation {
  /** Id such as `policies[3]`, or `policies[3].1` for the second policy in one string. */
  readonly id: string
  readonly effect: 'permit' | 'forbid'
  /** Result of the policy; `unknown` if a limit was exceeded or the engine failed. */
  readonly outcome: 'matches' | 'misses' | 'fails' | 'unknown'
  /** First part that does not hold or that fails, as policy text. */
  readonly because?: string | undefined
  /** Attributes that the part reads but the request does not contain. */
  readonly absent?: readonly string[] | undefined
}

export interface DecisionExplanation {
  readonly decision: CedarDecision
  /** Ids of the determining policies; empty when no policy applies. */
  readonly determining: readonly string[]
  readonly errors: readonly string[]
  /** Attributes that permit policies read but the request does not contain. */
  readonly missing: readonly string[]
  /** Applicable policies in configuration order, at most 200. */
  readonly policies: readonly PolicyExplanation[]
  /** Number of further policies that could have applied. */
  readonly leftOut: number
  /** The reason why the request is denied regardless of policies. */
  readonly refused?: string | undefined
}

/** A policy query about a caller that a fixture or a command describes. */
export interface PolicyQuestion extends Omit<AccessRequest, 'arguments'> {
  readonly claims: Readonly<Record<string, unknown>>
  /** The caller's name when the claims have no `sub`. */
  readonly subject?: string | undefined
  /** Facts about the caller's token; null for an absent fact. Default: derived from the claims. */
  readonly principal?: RecordedFacts | undefined
  readonly arguments?: unknown
}

export interface PolicySet extends AuthorizerConfig {
  /** The server's name: `MCP::"<name>"` is the parent of everything that the server offers. */
  readonly serverName: string
}

/**
 * Rejects with an INVALID_CONFIG error that lists every invalid policy, and with INVALID_PARAMS when the arguments are
 * not an object.
 */
export async function explainDecision(
  set: PolicySet,
  question: PolicyQuestion,
): Promise<DecisionExplanation> {
  const { serverName, ...config } = set
  const authorizer = makeAuthorizer(config, { serverName })
  const { subject, request } = await asked(authorizer, question)
  return explainRequest(authorizer, subject, request)
}

/** Converts the query to the authorizer's input. */
export async function asked(
  authorizer: Authorizer,
  { claims, subject: name, principal, arguments: args, ...request }: PolicyQuestion,
): Promise<{ readonly subject: PolicySubject; readonly request: AccessRequest }> {
  const caller = callerOf(claims, name ?? 'anonymous', principal)
  return {
    subject: await authorizer.subject(caller),
    request: {
      ...request,
      ...(args === undefined ? {} : { arguments: Buffer.from(JSON.stringify(args)) }),
    },
  }
}

/** Returns a caller with these claims. `given` overrides facts that are derived from the claims. */
function callerOf(claims: PolicyQuestion['claims'], subject: string, given: RecordedFacts = {}): Caller {
  const derived = callerFacts(claims)
  const { iss } = claims
  const {
    kind,
    issuer = typeof iss === 'string' ? iss : null,
    clientId = derived.clientId,
    authMethod = derived.authMethod,
    actor = derived.actor,
  } = given
  return makeCaller({
    issuer: issuer ?? '',
    subject,
    claims,
    facts: {
      kind: kind === 'machine' || kind === 'user' ? kind : derived.kind,
      clientId: clientId ?? undefined,
      authMethod: authMethod ?? undefined,
      actor: actor ?? undefined,
      // Uses the given claims unchanged, because policies read exactly these claims.
      hasUpstreams: false,
    },
  })
}

/** Explains the enforced policies. Rejects with INVALID_PARAMS when policies read arguments that cannot be parsed. */
async function explainRequest(
  authorizer: Authorizer,
  subject: PolicySubject,
  request: AccessRequest,
): Promise<DecisionExplanation> {
  const { decision, reason, errors, missing } = authorizer.verdict(subject, request)
  const result = { decision, determining: reason, errors, missing }
  if (subject.denyAll)
    return {
      ...result,
      policies: [],
      leftOut: 0,
      refused: "the caller's claims cannot be passed to the policies",
    }
  const { policies, call, unusable, target } = authorizer.evidence(subject, request)
  const candidates = policies.filter((policy) => mayMatter(policy, request.action, target.actions))
  const unheard = [...unusable].find((name) =>
    candidates.some(({ reads }) => reads.wholeContext || reads.attributes.has(name)),
  )
  return {
    ...result,
    policies: await explainPolicies(candidates.slice(0, maxCandidates), call),
    leftOut: Math.max(0, candidates.length - maxCandidates),
    refused:
      unheard === undefined
        ? undefined
        : `the value of ${unheard.slice(0, maxText)} cannot be passed to the policies, and a policy reads it`,
  }
}

/** Returns false for policies about other actions, which explain nothing. */
function mayMatter(policy: Policy, action: Action, actions: ReadonlySet<string>): boolean {
  const anybody = { op: 'All' } as const
  const scope = { principal: anybody, action: policy.scope.action, resource: anybody }
  const uid = { type: 'Action', id: action }
  return mayApply({ ...policy, scope }, { principal: uid, actions, resource: uid })
}

type Conditions = PolicyJson['conditions']

/** A part of a policy, written as a policy that matches exactly when the part holds. */
interface Part {
  readonly policy: PolicyJson
  readonly isScope: boolean
}

const anything = { principal: { op: 'All' }, action: { op: 'All' }, resource: { op: 'All' } } as const

function partsOf({ scope, conditions }: Policy): Part[] {
  const scopes = (['principal', 'action', 'resource'] as const)
    .filter((name) => scope[name].op !== 'All')
    .map((name) => ({
      isScope: true,
      policy: { ...anything, effect: 'permit', conditions: [], [name]: scope[name] } as PolicyJson,
    }))
  const clauses = conditions.flatMap(clausesOf).map((clause) => ({
    isScope: false,
    policy: { ...anything, effect: 'permit', conditions: [clause] } as PolicyJson,
  }))
  return [...scopes, ...clauses]
}

interface Operands {
  readonly left: Conditions[number]['body']
  readonly right: Conditions[number]['body']
}

/** Splits a condition: `when { a && b }` is two clauses, and so is `unless { a || b }`. */
function clausesOf({ kind, body }: Conditions[number]): Conditions {
  const operator = kind === 'when' ? '&&' : '||'
  const operands = (body as unknown as Readonly<Record<string, Operands | undefined>>)[operator]
  if (!operands) return [{ kind, body }]
  return [...clausesOf({ kind, body: operands.left }), ...clausesOf({ kind, body: operands.right })]
}

async function explainPolicies(
  policies: readonly Policy[],
  call: AuthorizationCall,
): Promise<PolicyExplanation[]> {
  const present = attributesIn(call)
  const explained: PolicyExplanation[] = []
  let batch: { policy: Policy; parts: readonly Part[] }[] = []
  const flush = async (): Promise<void> => {
    explained.push(...explainBatch(batch, call, present))
    batch = []
    await setImmediate()
  }
  for (const policy of policies) {
    batch.push({ policy, parts: partsOf(policy).slice(0, maxParts + 1) })
    if (batch.reduce((sum, { parts }) => sum + parts.length, 0) >= partsAtOnce) await flush()
  }
  await flush()
  return explained
}

function explainBatch(
  batch: readonly { readonly policy: Policy; readonly parts: readonly Part[] }[],
  call: AuthorizationCall,
  present: ReadonlySet<string>,
): PolicyExplanation[] {
  const ids = new Map<string, PolicyJson>()
  for (const [i, { parts }] of batch.entries())
    for (const [j, { policy }] of parts.entries()) ids.set(`${i}.${j}`, policy)
  const outcome = evaluate(ids, call)
  return batch.map(({ policy, parts }, i): PolicyExplanation => {
    const { id, effect } = policy
    if (!outcome || parts.length > maxParts) return { id, effect, outcome: 'unknown' }
    const at = parts.findIndex((_part, j) => !outcome.hold.has(`${i}.${j}`))
    const part = parts[at]
    if (!part) return { id, effect, outcome: 'matches' }
    const absent = attributesOf(part.policy).filter((name) => !present.has(name))
    return {
      id,
      effect,
      outcome: outcome.fail.has(`${i}.${at}`) ? 'fails' : 'misses',
      because: textOf(part),
      ...(absent.length > 0 ? { absent } : {}),
    }
  })
}

interface Evaluated {
  readonly hold: ReadonlySet<string>
  readonly fail: ReadonlySet<string>
}

/** Returns undefined when the engine failed. */
function evaluate(policies: ReadonlyMap<string, PolicyJson>, call: AuthorizationCall): Evaluated | undefined {
  if (policies.size === 0) return { hold: new Set(), fail: new Set() }
  try {
    const staticPolicies = Object.fromEntries(policies)
    const answer = callEngine((engine) => engine.isAuthorized({ ...call, policies: { staticPolicies } }))
    if (answer.type === 'failure') return undefined
    const { reason, errors } = answer.response.diagnostics
    return { hold: new Set(reason), fail: new Set(errors.map(({ policyId }) => policyId)) }
  } catch (error) {
    if (error instanceof EngineFailure) return undefined
    throw error
  }
}

/** Returns the part as policy text. */
function textOf({ policy, isScope }: Part): string {
  try {
    const answer = callEngine((engine) => engine.policyToText(policy))
    if (answer.type === 'failure') return 'a part of the policy'
    const text = answer.text.replaceAll(/\s+/g, ' ').trim()
    const [, scope = '', clause = ''] =
      /^permit\s*\((.*?)\)\s*((?:when|unless)\s*\{.*\})?;?$/.exec(text) ?? []
    const part = isScope ? scope.split(/, (?=action|resource)/).find((one) => /\s/.test(one.trim())) : clause
    return (part ?? text).trim().slice(0, maxText)
  } catch (error) {
    if (error instanceof EngineFailure) return 'a part of the policy'
    throw error
  }
}

/** Returns the names of the attributes that a part reads. */
function attributesOf({ conditions }: PolicyJson): string[] {
  return [...new Set(conditions.flatMap(({ body }) => attributesRead(body)))]
}

function attributesRead(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return []
  if (Array.isArray(value)) return value.flatMap(attributesRead)
  const { attr }: { attr?: unknown } = value
  const own = (Array.isArray(attr) ? attr : [attr]).filter((name) => typeof name === 'string')
  return [...own, ...Object.values(value as Record<string, unknown>).flatMap(attributesRead)]
}
