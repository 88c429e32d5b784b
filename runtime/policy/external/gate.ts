/**
 * A gate that queries an external decision point about each request, and about each item of a list.
 *
 * Fails closed: a request without a decision is denied. List items without a decision are omitted. A list without any
 * decision is rejected, because an empty list would be misleading. The gate also queries the decision point about the
 * gateway's own tools.
 * Source: docs/guides/decision-point.md; ARCHITECTURE.md, "A tool call".
 */
import { hash } from 'node:crypto'
import { GatehouseError, type RuntimeAuthz, timerMs, own } from '../../../schemas/index.ts'
import type { JsonObject } from '../../mcp/index.ts'
import { type Caller, type Log, silentLog } from '../../net/index.ts'
import { type Claims, claimsOfUpstream, hasUpstreams, type UpstreamTokenSource } from '../claims.ts'
import { type CheckOptions, type DecisionReport, type FilterOptions, type Gate, notFound } from '../gate.ts'
import { recordedArguments } from '../inputs.ts'
import { parseList, withItems } from '../list-filter.ts'
import { type AccessRequest, accessRequestsOf, lists, refusal } from '../requests.ts'
import { undecided, type PolicyVerdict } from '../verdict.ts'
import { DecisionFailure } from '../remote/json-post.ts'
import { decideItems } from './item-decisions.ts'
import type { Question, WireFormat } from './format.ts'
import { type ExternalPoint, externalPoint, formatOf } from './formats.ts'
import { AskedPoint, type PointEvent } from './point.ts'
import { type Principal, principalOf } from './question.ts'

export interface ExternalGateParts {
  /** Part of each resource's name. */
  readonly serverName: string
  /** Source of upstream tokens, required for primaryUpstreamProvider. */
  readonly upstreamTokens?: UpstreamTokenSource | undefined
  readonly observe: (event: PointEvent) => void
  /** Log for failures. Default: no log. */
  readonly log?: Log | undefined
}

/** Limits on the queries for one request. */
const maxQuestions = 100
/** Time limit for all queries about one list, as a multiple of the response timeout. */
const listTimeouts = 4

/** The caller, with the claims for the decision point. */
interface Requester {
  readonly caller: Caller
  readonly principal: Principal
}

/**
 * Creates the gate; undefined without a decision point. Throws INVALID_CONFIG when a configured file cannot be used.
 */
export function makeExternalGate(
  authz: RuntimeAuthz | undefined,
  parts: ExternalGateParts,
): Gate | undefined {
  const point = externalPoint(authz)
  return point && new ExternalGate(point, authz?.primaryUpstreamProvider, parts)
}

class ExternalGate implements Gate {
  readonly #parts: ExternalGateParts
  readonly #settings: ExternalPoint['settings']
  /** The decision maker's name in the audit log. */
  readonly #decidedBy: ExternalPoint['type']
  /** Upstream provider that provides the claims; undefined when the presented token provides them. */
  readonly #provider: string | undefined
  readonly #format: WireFormat
  readonly #point: AskedPoint
  /** Hash that identifies the settings in decision records. */
  readonly #digest: string
  readonly #listMs: number

  constructor(point: ExternalPoint, provider: string | undefined, parts: ExternalGateParts) {
    this.#parts = parts
    this.#settings = point.settings
    this.#decidedBy = point.type
    this.#provider = provider
    this.#format = formatOf(point)
    this.#point = new AskedPoint(point, parts.observe, parts.log ?? silentLog)
    this.#digest = hash('sha256', JSON.stringify([parts.serverName, point.settings]), 'hex').slice(0, 16)
    this.#listMs = listTimeouts * timerMs(point.settings.http.timeout)
  }

  async check(caller: Caller, method: string, params: JsonObject, options: CheckOptions = {}): Promise<void> {
    const questions = questionsOf(method, params)
    if (questions.length === 0) return
    const principal = await this.#principalFor(caller, options.signal)
    for (const question of questions) {
      if (!principal) throw refusal(question.action)
      await this.#checkOne({ caller, principal }, question, options)
    }
  }

  async filter(
    caller: Caller,
    method: string,
    result: Buffer,
    { signal, originOf }: FilterOptions = {},
  ): Promise<Buffer> {
    const row = own(lists, method)
    if (!row) return result
    const principal = await this.#principalFor(caller, signal)
    const page = parseList(row, result)
    if (!principal) return withItems(row, page, [])
    const { items } = page
    const verdicts = await decideItems(items, {
      signal,
      budgetMs: this.#listMs,
      together: () => this.#point.together,
      decide: async (group, within) => {
        const questions = group.map(({ id, hints }) =>
          this.#question(principal, { action: row.action, id, hints, origin: originOf?.(id) }),
        )
        return this.#point.decideAll(await Promise.all(questions), caller.key, within)
      },
      late: (error) => this.#parts.observe({ kind: 'failure', reason: 'list_timeout', error, ms: 0 }),
    })
    if (verdicts.size === 0 && items.length > 0) throw new GatehouseError('DECISION_UNAVAILABLE')
    const allowed = items.filter((item) => verdicts.get(item) === true)
    return allowed.length === items.length && !page.incomplete ? result : withItems(row, page, allowed)
  }

  close(): Promise<void> {
    return this.#point.close()
  }

  #question(principal: Principal, request: AccessRequest): Promise<Question> {
    return this.#format.question({ server: this.#parts.serverName, principal }, request)
  }

  async #principalFor(caller: Caller, signal: AbortSignal | undefined): Promise<Principal | undefined> {
    const claims = await this.#claimsOf(caller, signal)
    if (!claims) return undefined
    const { actor } = caller.facts ?? {}
    const principal: Principal = {
      ...principalOf(claims, this.#settings.claimMapping),
      ...(actor === undefined ? {} : { actor }),
    }
    // Id for callers without a `sub` claim.
    return principal['sub'] === undefined ? { ...principal, sub: caller.subject } : principal
  }

  /** Claims for the decision point. Without the required claims, nothing is allowed. */
  async #claimsOf(caller: Caller, signal: AbortSignal | undefined): Promise<Claims | undefined> {
    const { upstreamTokens } = this.#parts
    if (this.#provider === undefined || !upstreamTokens || !hasUpstreams(caller)) return caller.claims
    const tokens = await upstreamTokens.get(caller, this.#provider, signal)
    return tokens && claimsOfUpstream(tokens.accessToken, tokens.idToken, caller.claims, upstreamTokens)
  }

  async #checkOne(
    requester: Requester,
    question: AccessRequest,
    { signal, factsOf, decided }: CheckOptions,
  ): Promise<void> {
    const facts = await factsOf?.(question)
    if (facts === 'later') return
    const known = facts === 'no such thing' || facts instanceof GatehouseError ? undefined : facts
    const request = { ...question, ...known }
    const report = (verdict: PolicyVerdict): void => decided?.(this.#reportOf(requester, request, verdict))
    let allow: boolean
    try {
      const asked = await this.#question(requester.principal, request)
      allow = await this.#point.decide(asked, requester.caller.key, signal)
    } catch (error) {
      if (!(error instanceof DecisionFailure)) throw error
      report({ ...undecided, errors: [`${this.#decidedBy}: ${error.reason}`] })
      throw new GatehouseError('DECISION_UNAVAILABLE', { cause: error })
    }
    report({
      decision: allow ? 'permitted' : 'forbidden',
      reason: [this.#decidedBy],
      errors: [],
      missing: [],
    })
    if (!allow) throw refusal(question.action)
    // The decision point allows the request without facts about the resource. Denies the request if the facts are
    // unavailable or the resource does not exist, because the resource could appear before the request arrives.
    if (facts instanceof GatehouseError) throw facts
    if (facts === 'no such thing') throw notFound(question)
  }

  #reportOf(
    { caller, principal }: Requester,
    request: AccessRequest,
    verdict: PolicyVerdict,
  ): DecisionReport {
    return {
      request,
      allowed: verdict.decision === 'permitted',
      verdict,
      digest: this.#digest,
      shadow: undefined,
      inputs: (mode, facts) => ({
        mode,
        groups: [],
        hints: facts?.hints ?? request.hints,
        ...(mode === 'read'
          ? { attributes: principal }
          : { claims: caller.claims, arguments: recordedArguments(request) }),
      }),
    }
  }
}

/**
 * Returns a request's queries, including prompt arguments, or an empty list for methods that are not subject to
 * authorization.
 */
function questionsOf(method: string, params: JsonObject): readonly AccessRequest[] {
  const questions = accessRequestsOf(method, params) ?? []
  if (questions.length > maxQuestions) {
    throw new GatehouseError('INVALID_PARAMS', {
      detail: `Invalid params: at most ${maxQuestions} resources are allowed`,
    })
  }
  if (method !== 'prompts/get') return questions
  return questions.map((question) => ({ ...question, arguments: params.raw('arguments') }))
}

/** Returns the reasons why the decision point cannot be queried: unreadable files. */
export function externalViolations(point: ExternalPoint): readonly string[] {
  try {
    void new AskedPoint(point, () => {}, silentLog).close()
    return []
  } catch (error) {
    if (error instanceof GatehouseError) return [error.message]
    throw error
  }
}
