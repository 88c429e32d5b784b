/**
 * Uses Cedar policies to decide whether a caller may perform a request.
 *
 * Nothing is permitted by default, and a forbid overrides every permit. A permit that fails during evaluation is
 * ignored, and a forbid that fails denies the request. The log contains each failure once. If the engine cannot decide,
 * the request is denied.
 *
 * The cache contains decisions that do not depend on arguments, keyed by the caller, action and resource as the
 * policies see them. A new token therefore keeps the cached decisions unless it changes data that a policy reads.
 * Source: docs/reference/specification/virtual-server.md#incomingAuth, incomingAuth.authz.
 */
import { LRUCache } from 'lru-cache'
import {
  type AuthorizationCall,
  EngineFailure,
  originTypes,
  type PreparedPolicies,
  tokenFacts,
} from '../../schemas/cedar/index.ts'
import { formatViolations, GatehouseError, type RuntimeAuthz } from '../../schemas/index.ts'
import { type Caller, type Log, silentLog } from '../net/index.ts'
import {
  argumentPrefix,
  argumentAttributes,
  type RequestAttributes,
  type WantedArguments,
  wantedNames,
} from './arguments.ts'
import { type Claims, claimsOfUpstream, hasUpstreams, type UpstreamTokenSource } from './claims.ts'
import { EvaluationErrors, type PolicyFailure } from './cedar/evaluation-errors.ts'
import { mayApply, type Policy, type PolicyTarget, prepare, readPolicySet } from './cedar/policies.ts'
import { RequestEntities } from './cedar/request-entities.ts'
import { hintNames, originAttributes, policyActions, type PolicyRequest, resourceOf } from './requests.ts'
import { readStaticEntities, type StaticEntities } from './cedar/static-entities.ts'
import { makeSubject, denyAll, type PolicySubject, type TokenFact } from './subject.ts'
import { longestText } from './cedar/values.ts'
import { type CedarDecision, maxListed, undecided, type PolicyVerdict } from './verdict.ts'
import { digestOf } from './cedar/described.ts'

export interface Authorizer {
  /** Returns the caller as policies see it. Rejects with errors from the upstream token source. */
  subject(caller: Caller, signal?: AbortSignal): Promise<PolicySubject>
  /** Short hash of the policies, entities and settings; equal for authorizers that make the same decisions. */
  readonly digest: string
  /** Names of request attributes (claims, arguments) that a policy reads. */
  readonly reads: ReadonlySet<string>
  /** Facts about the caller's token that a policy reads. */
  readonly facts: ReadonlySet<TokenFact>
  /** Returns the decision. Throws INVALID_PARAMS when policies read arguments that cannot be parsed. */
  decide(subject: PolicySubject, question: PolicyRequest): CedarDecision
  /** Returns the decision with its reasons. Throws like `decide`. */
  verdict(subject: PolicySubject, question: PolicyRequest): PolicyVerdict
  /** True when facts about the named item (a tool's hints, its origin) can change the decision. */
  readsFacts(subject: PolicySubject, question: PolicyRequest): boolean
  /** Returns the engine input for a query. Throws like `decide`. */
  evidence(subject: PolicySubject, question: PolicyRequest): Evidence
}

/** Policies and entities that a decision is based on. */
export interface Evidence {
  readonly policies: readonly Policy[]
  readonly call: AuthorizationCall
  /** Request attributes whose values Cedar cannot represent. */
  readonly unusable: ReadonlySet<string>
  readonly target: PolicyTarget
}

export type { CedarDecision, PolicyVerdict }

export type AuthorizerConfig = Omit<RuntimeAuthz, 'type'>

export interface AuthorizerParts {
  /** The server's name: `MCP::"<name>"` is the parent of everything that the server offers. */
  readonly serverName: string
  /** Required for primaryUpstreamProvider. By default, the claims come from the presented token. */
  readonly upstreamTokens?: UpstreamTokenSource | undefined
  /** Called for each engine failure. */
  readonly engineFailed?: ((error: unknown) => void) | undefined
  readonly log?: Log | undefined
  /** Called once for each policy that could not be evaluated, instead of logging a warning. */
  readonly policyFailed?: ((failure: PolicyFailure) => void) | undefined
  /** Returns a policy's id from its position. Default: an id such as `policies[3]`. */
  readonly nameOf?: ((index: number) => string) | undefined
}

const memoBytes = 16 * 1024 * 1024
/** Maximum length of names in cached decisions, because untrusted clients choose the names. */
const memoName = 512
const noArguments: RequestAttributes = { attributes: {}, unusable: new Set() }

/** Creates an authorizer. Throws an INVALID_CONFIG error that lists every invalid policy and entity document. */
export function makeAuthorizer(config: AuthorizerConfig, parts: AuthorizerParts): Authorizer {
  const { policies, problems } = readPolicySet(config.policies ?? [], parts.nameOf)
  const { entities, problems: entityViolations } = readStaticEntities(config.entitiesJson)
  const all = [...problems, ...entityViolations]
  if (policies.length === 0 && problems.length === 0)
    all.push({ path: 'policies', message: 'requires at least one policy' })
  if (all.length > 0) {
    throw new GatehouseError('INVALID_CONFIG', {
      detail: `invalid authorization policies:\n${formatViolations(all)}`,
    })
  }
  return new CedarAuthorizer(config, parts, policies, entities)
}

/**
 * Returns the decision that the shadow policies would make, alongside or instead of the enforced policies; undefined if
 * there are no shadow policies. Throws INVALID_CONFIG like `makeAuthorizer`.
 */
export function makeShadowAuthorizer(
  config: AuthorizerConfig,
  parts: Pick<AuthorizerParts, 'serverName' | 'upstreamTokens'>,
): Authorizer | undefined {
  const { shadowPolicies = [], shadowReplaces = false, policies = [] } = config
  if (shadowPolicies.length === 0) return undefined
  const enforced = shadowReplaces ? [] : policies
  const nameOf = (index: number): string =>
    index < enforced.length ? `policies[${index}]` : `shadowPolicies[${index - enforced.length}]`
  return makeAuthorizer({ ...config, policies: [...enforced, ...shadowPolicies] }, { ...parts, nameOf })
}

/** A subject created from upstream tokens, valid as long as the tokens do not change. */
interface FromUpstream {
  readonly accessToken: string
  readonly idToken: string | undefined
  readonly subject: PolicySubject
}

type AnyAction = PolicyRequest['action']
type ActionsAbove = Readonly<Record<AnyAction, ReadonlySet<string>>>

class CedarAuthorizer implements Authorizer {
  readonly #config: AuthorizerConfig
  readonly #parts: AuthorizerParts
  readonly #log: Log
  readonly #policies: readonly Policy[]
  readonly #argumentPolicies: readonly Policy[]
  readonly #hintPolicies: readonly Policy[]
  readonly #originPolicies: readonly Policy[]
  readonly #wanted: WantedArguments
  readonly #maxText: number
  readonly #prepared: PreparedPolicies
  readonly #entities: RequestEntities
  readonly #actionsAbove: ActionsAbove
  readonly #violations: EvaluationErrors
  readonly #memo = new LRUCache<string, PolicyVerdict>({
    maxSize: memoBytes,
    sizeCalculation: ({ reason, errors, missing }, key) =>
      160 + 2 * key.length + 64 * (reason.length + errors.length + missing.length),
  })
  readonly digest: string
  readonly reads: ReadonlySet<string>
  readonly facts: ReadonlySet<TokenFact>
  /** Subjects, keyed by the presented token's claims object, which is never mutated. */
  readonly #subjects = new WeakMap<Claims, PolicySubject>()
  readonly #fromUpstream = new WeakMap<Claims, FromUpstream>()

  constructor(
    config: AuthorizerConfig,
    parts: AuthorizerParts,
    policies: readonly Policy[],
    configured: StaticEntities,
  ) {
    this.#config = config
    this.#parts = parts
    this.#log = parts.log ?? silentLog
    this.#policies = policies
    this.digest = digestOf(config, parts.serverName)
    this.#violations = new EvaluationErrors(policies, this.#log, parts.policyFailed)
    const reads = policies.map((policy) => policy.reads)
    const names = new Set(reads.flatMap(({ attributes }) => [...attributes]))
    this.reads = new Set([...names].filter((name) => /^(?:claim_|arg_)/.test(name)))
    const ofPrincipal = new Set(reads.flatMap(({ principalAttributes }) => [...principalAttributes]))
    this.#wanted = wantedNames(
      names,
      reads.some(({ wholeContext }) => wholeContext),
    )
    this.facts = new Set(
      tokenFacts.filter((name) => (name === 'actor' ? this.#wanted : ofPrincipal).has(name)),
    )
    this.#maxText = longestText(reads.reduce((sum, { patternLength }) => sum + patternLength, 0))
    this.#argumentPolicies = policies.filter(
      ({ reads }) =>
        reads.wholeContext || [...reads.attributes].some((name) => name.startsWith(argumentPrefix)),
    )
    this.#hintPolicies = policies.filter(({ reads }) => hintNames.some((hint) => reads.attributes.has(hint)))
    const placesOrigins = configured.mentions(originTypes)
    this.#originPolicies = policies.filter((policy) => placesOrigins || readsOrigin(policy))
    this.#prepared = prepare(policies)
    this.#entities = new RequestEntities({
      configured,
      serverName: parts.serverName,
      named: reads.flatMap(({ entities }) => entities),
      wants: (attribute) => this.#wanted.has(attribute),
    })
    this.#actionsAbove = Object.fromEntries(
      (Object.keys(policyActions) as AnyAction[]).map((name) => [name, this.#entities.actionsAbove(name)]),
    ) as ActionsAbove
    if (config.primaryUpstreamProvider !== undefined && !parts.upstreamTokens)
      this.#log.warn('primaryUpstreamProvider has no effect without an embedded authorization server')
  }

  async subject(caller: Caller, signal?: AbortSignal): Promise<PolicySubject> {
    const { primaryUpstreamProvider: provider } = this.#config
    const { upstreamTokens } = this.#parts
    if (provider === undefined || !upstreamTokens || !hasUpstreams(caller)) {
      const known = this.#subjects.get(caller.claims)
      if (known) return known
      const subject = this.#subjectOf(caller.claims, caller)
      this.#subjects.set(caller.claims, subject)
      return subject
    }
    const tokens = await upstreamTokens.get(caller, provider, signal)
    if (!tokens) return denyAll(caller.subject)
    const { accessToken, idToken } = tokens
    const known = this.#fromUpstream.get(caller.claims)
    if (known?.accessToken === accessToken && known.idToken === idToken) return known.subject
    const claims = claimsOfUpstream(accessToken, idToken, caller.claims, upstreamTokens)
    if (!claims)
      this.#log.warn('the access token from the primary upstream provider cannot be read', { provider })
    const subject = claims ? this.#subjectOf(claims, caller) : denyAll(caller.subject)
    this.#fromUpstream.set(caller.claims, { accessToken, idToken, subject })
    return subject
  }

  #subjectOf(claims: Claims, caller: Caller): PolicySubject {
    return makeSubject(claims, caller, this.#config, {
      claim: (name) => this.#wanted.has(name),
      fact: (name) => this.facts.has(name),
    })
  }

  readsFacts(subject: PolicySubject, question: PolicyRequest): boolean {
    const hints = question.action === 'call_tool' ? this.#hintPolicies : []
    if (hints.length + this.#originPolicies.length === 0) return false
    const target = this.#target(subject, question)
    const applies = (policy: Policy): boolean => mayApply(policy, target)
    return hints.some(applies) || this.#originPolicies.some(applies)
  }

  #target(subject: PolicySubject, question: PolicyRequest): PolicyTarget {
    return {
      principal: subject.principal,
      actions: this.#actionsAbove[question.action],
      resource: resourceOf(question),
    }
  }

  decide(subject: PolicySubject, question: PolicyRequest): CedarDecision {
    return this.verdict(subject, question).decision
  }

  verdict(subject: PolicySubject, question: PolicyRequest): PolicyVerdict {
    if (subject.denyAll || !this.#canBeNamed(question)) return undecided
    const given = this.#argumentsOf(subject, question)
    const memorable =
      namesLength(question) <= memoName && given.unusable.size + Object.keys(given.attributes).length === 0
    const key = memorable ? this.#memoKey(subject, question) : undefined
    const known = key === undefined ? undefined : this.#memo.get(key)
    if (known) return known
    const verdict = this.#evaluate(subject, question, given)
    if (key !== undefined && verdict) this.#memo.set(key, verdict)
    return verdict ?? undecided
  }

  #canBeNamed({ id, origin }: PolicyRequest): boolean {
    return [id, origin?.original, origin?.template].every(
      (name) => name === undefined || (name.length <= this.#maxText && name.isWellFormed()),
    )
  }

  /** Returns the arguments that an applicable policy reads. */
  #argumentsOf(subject: PolicySubject, question: PolicyRequest): RequestAttributes {
    if (question.arguments === undefined || this.#argumentPolicies.length === 0) return noArguments
    const target = this.#target(subject, question)
    if (!this.#argumentPolicies.some((policy) => mayApply(policy, target))) return noArguments
    return argumentAttributes(question.arguments, this.#wanted, this.#maxText)
  }

  #memoKey(subject: PolicySubject, { action, id, hints, origin }: PolicyRequest): string {
    let marks = ''
    for (const hint of hintNames) {
      const value = this.#wanted.has(hint) ? hints?.[hint] : undefined
      marks += value === undefined ? '-' : value ? '1' : '0'
    }
    const { backend = '', template = '', original = '' } = origin ?? {}
    const from = origin ? `${backend}\0${template.length}\0${template}${original}` : ''
    return `${subject.fingerprint}${marks}${action}\0${id.length}\0${id}\0${from}`
  }

  evidence(subject: PolicySubject, question: PolicyRequest): Evidence {
    const given = this.#argumentsOf(subject, question)
    return {
      policies: this.#policies,
      call: this.#call(subject, question, given),
      unusable: new Set([...subject.unusable, ...given.unusable]),
      target: this.#target(subject, question),
    }
  }

  #call(subject: PolicySubject, question: PolicyRequest, given: RequestAttributes): AuthorizationCall {
    return {
      principal: subject.principal,
      action: { type: 'Action', id: question.action },
      resource: resourceOf(question),
      context: { ...subject.attributes, ...subject.contextFacts, ...given.attributes },
      // The cast is safe, because the engine does not modify the attributes although its type is mutable.
      entities: this.#entities.of(subject, question, given.attributes) as never,
    }
  }

  /** Returns undefined when the engine failed. A retry may succeed. */
  #evaluate(
    subject: PolicySubject,
    question: PolicyRequest,
    given: RequestAttributes,
  ): PolicyVerdict | undefined {
    const unheard = this.#findUnusableRead(subject, question, given)
    if (unheard) {
      this.#violations.reportUnusable(unheard.policy, unheard.attribute)
      return { ...undecided, errors: [unheard.policy.id] }
    }
    const call = this.#call(subject, question, given)
    const response = this.#authorize(call)
    if (!response) return undefined
    if (response.type === 'failure') {
      this.#violations.reportEngineRejection(response.errors)
      return undecided
    }
    const { decision, diagnostics } = response.response
    const failed = this.#violations.failed(diagnostics.errors)
    const reasons = {
      reason: diagnostics.reason.slice(0, maxListed),
      errors: diagnostics.errors.slice(0, maxListed).map(({ policyId }) => policyId),
    }
    if (decision === 'allow' && !failed) return { decision: 'permitted', ...reasons, missing: [] }
    const forbidden = failed || diagnostics.reason.length > 0
    // Ignores permits if a forbid policy has failed.
    const reason = decision === 'allow' ? [] : reasons.reason
    const missing = this.#missing(subject, question, call)
    return { decision: forbidden ? 'forbidden' : 'unmentioned', ...reasons, reason, missing }
  }

  /** Returns the attributes that applicable permits read but the request lacks. */
  #missing(subject: PolicySubject, question: PolicyRequest, call: AuthorizationCall): readonly string[] {
    const target = this.#target(subject, question)
    const read = this.#policies
      .filter((policy) => policy.effect === 'permit' && mayApply(policy, target))
      .flatMap(({ reads }) => [...reads.attributes])
    const present = attributesIn(call)
    return [...new Set(read)].filter((name) => !present.has(name)).slice(0, maxListed)
  }

  #authorize(call: AuthorizationCall): ReturnType<PreparedPolicies['authorize']> | undefined {
    try {
      return this.#prepared.authorize(call)
    } catch (error) {
      if (!(error instanceof EngineFailure)) throw error
      this.#parts.engineFailed?.(error)
      return undefined
    }
  }

  /** Returns an applicable policy that reads an attribute without a Cedar value. */
  #findUnusableRead(
    subject: PolicySubject,
    question: PolicyRequest,
    given: RequestAttributes,
  ): { policy: Policy; attribute: string } | undefined {
    if (subject.unusable.size + given.unusable.size === 0) return undefined
    const target = this.#target(subject, question)
    for (const policy of this.#policies) {
      const { wholeContext, attributes } = policy.reads
      for (const attribute of [...subject.unusable, ...given.unusable]) {
        if ((wholeContext || attributes.has(attribute)) && mayApply(policy, target))
          return { policy, attribute }
      }
    }
    return undefined
  }
}

function namesLength({ id, origin }: PolicyRequest): number {
  return id.length + (origin ? origin.original.length + (origin.template?.length ?? 0) : 0)
}

/** True when a decision can depend on an item's origin. */
export function readsOrigin({ reads: { attributes, types, computedEntities } }: Policy): boolean {
  return (
    computedEntities ||
    originAttributes.some((name) => attributes.has(name)) ||
    [...types].some((type) => originTypes.has(type))
  )
}

/** Returns the names of all attributes in the engine input. */
export function attributesIn({ context, entities }: AuthorizationCall): ReadonlySet<string> {
  return new Set([...Object.keys(context), ...entities.flatMap(({ attrs }) => Object.keys(attrs))])
}
