/**
 * A gate that asks an external decision point about each request, and about each item of a list.
 *
 * Fails closed: whatever keeps a decision from being made refuses the request. Items of a list whose decision cannot be
 * made are left out; a list of which no decision could be made is refused, because an empty one would be a lie. Tools
 * of the gateway itself are asked about like all others.
 * Source: docs/guides/decision-point.md; ARCHITECTURE.md, "A tool call".
 */
import { hash } from 'node:crypto'
import {
  GatehouseError,
  type RuntimeAuthz,
  type RuntimeDecisionPoint,
  timerMs,
} from '../../../schemas/index.ts'
import type { JsonObject } from '../../mcp/index.ts'
import type { Caller } from '../../net/index.ts'
import { type Claims, claimsOfUpstream, type UpstreamTokenSource } from '../claims.ts'
import { type CheckOptions, type DecisionReport, type Gate, notFound } from '../gate.ts'
import { recordedArguments } from '../inputs.ts'
import { type ListedItem, parseList, withItems } from '../list-filter.ts'
import { type AccessRequest, accessRequestsOf, lists, refusal } from '../requests.ts'
import { undecided, type PolicyVerdict } from '../verdict.ts'
import { DecisionFailure } from '../remote/json-post.ts'
import { makeDecisionPoint, type PointEvent } from './point.ts'
import { principalOf, questionText } from './question.ts'

export interface ExternalGateParts {
  /** Stands in the name of each resource. */
  readonly serverName: string
  /** Required for primaryUpstreamProvider. */
  readonly upstreamTokens?: UpstreamTokenSource | undefined
  readonly observe: (event: PointEvent) => void
}

/** In the audit log, what decided. */
const decidedBy = 'httpv1'
/** Questions about one list that are open at once. */
const questionsAtOnce = 16
/** What one request may ask about. */
const maxQuestions = 100
/** All questions about one list together take no longer than so many responses. */
const listTimeouts = 4

/** Throws INVALID_CONFIG when a file that the settings name cannot be used. */
export function makeExternalGate(
  authz: RuntimeAuthz & { readonly httpv1: RuntimeDecisionPoint },
  { serverName, upstreamTokens, observe }: ExternalGateParts,
): Gate {
  const { httpv1: settings, primaryUpstreamProvider: provider } = authz
  const point = makeDecisionPoint(settings, observe)
  const digest = hash('sha256', JSON.stringify([serverName, settings]), 'hex').slice(0, 16)
  const listMs = listTimeouts * timerMs(settings.http.timeout)

  /** Undefined: what decides is not to be had, so nothing is allowed. */
  async function claimsOf(caller: Caller, signal: AbortSignal | undefined): Promise<Claims | undefined> {
    if (provider === undefined || !upstreamTokens) return caller.claims
    const tokens = await upstreamTokens.get(caller, provider, signal)
    return tokens && claimsOfUpstream(tokens.accessToken, tokens.idToken, caller.claims)
  }

  async function principalFor(caller: Caller, signal: AbortSignal | undefined) {
    const claims = await claimsOf(caller, signal)
    if (!claims) return undefined
    const principal = principalOf(claims, settings.claimMapping)
    // Callers whose claims have no `sub` are somebody too.
    return principal['sub'] === undefined ? { ...principal, sub: caller.subject } : principal
  }

  type Principal = NonNullable<Awaited<ReturnType<typeof principalFor>>>

  async function checkOne(
    { caller, principal, question }: { caller: Caller; principal: Principal; question: AccessRequest },
    { signal, factsOf, decided }: CheckOptions,
  ): Promise<void> {
    const facts = await factsOf?.(question)
    if (facts === 'later') return
    const known = facts === 'no such thing' || facts instanceof GatehouseError ? undefined : facts
    const request = { ...question, ...known }
    const tell = (verdict: PolicyVerdict): void =>
      decided?.(reportOf(request, verdict, { caller, principal }))
    let allow: boolean
    try {
      allow = await point.decide(
        await questionText(serverName, principal, request, settings),
        caller.key,
        signal,
      )
    } catch (error) {
      if (!(error instanceof DecisionFailure)) throw error
      tell({ ...undecided, errors: [`${decidedBy}: ${error.reason}`] })
      throw new GatehouseError('DECISION_UNAVAILABLE', { cause: error })
    }
    tell({ decision: allow ? 'permitted' : 'forbidden', reason: [decidedBy], errors: [], missing: [] })
    if (!allow) throw refusal(question.action)
    // Allowed without what is known of the thing: it must not come into being on the way to it.
    if (facts instanceof GatehouseError) throw facts
    if (facts === 'no such thing') throw notFound(question)
  }

  function reportOf(
    request: AccessRequest,
    verdict: PolicyVerdict,
    { caller, principal }: { caller: Caller; principal: Principal },
  ): DecisionReport {
    const allowed = verdict.decision === 'permitted'
    return {
      request,
      allowed,
      verdict,
      digest,
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

  /** What may be seen, and how many items nobody could decide about. */
  async function decideItems(
    items: readonly ListedItem[],
    decide: (item: ListedItem, signal: AbortSignal) => Promise<boolean>,
    given: AbortSignal | undefined,
  ): Promise<{ allowed: ListedItem[]; undecided: number }> {
    const budget = AbortSignal.timeout(listMs)
    const signal = given ? AbortSignal.any([given, budget]) : budget
    const verdicts = new Map<ListedItem, boolean>()
    const waiting = items.values()
    const askInTurn = async (): Promise<void> => {
      for (const item of waiting) {
        if (signal.aborted) return
        try {
          verdicts.set(item, await decide(item, signal))
        } catch (error) {
          given?.throwIfAborted()
          if (!(error instanceof DecisionFailure) && !budget.aborted) throw error
        }
      }
    }
    await Promise.all(Array.from({ length: Math.min(questionsAtOnce, items.length) }, askInTurn))
    given?.throwIfAborted()
    if (budget.aborted && verdicts.size < items.length) {
      const error = new Error(
        `${items.length - verdicts.size} items of a list were not decided about in time`,
      )
      observe({ kind: 'failure', reason: 'list_timeout', error, ms: 0 })
    }
    return {
      allowed: items.filter((item) => verdicts.get(item) === true),
      undecided: items.length - verdicts.size,
    }
  }

  return {
    async check(caller, method, params, options = {}) {
      const questions = questionsOf(method, params)
      if (questions.length === 0) return
      const principal = await principalFor(caller, options.signal)
      for (const question of questions) {
        if (!principal) throw refusal(question.action)
        await checkOne({ caller, principal, question }, options)
      }
    },

    async filter(caller, method, result, { signal, originOf } = {}) {
      const row = lists[method]
      if (!row) return result
      const principal = await principalFor(caller, signal)
      const page = parseList(row, result)
      if (!principal) return withItems(row, page, [])
      const decide = async ({ id, hints }: ListedItem, within: AbortSignal): Promise<boolean> => {
        const request = { action: row.action, id, hints, origin: originOf?.(id) }
        return point.decide(await questionText(serverName, principal, request, settings), caller.key, within)
      }
      const { allowed, undecided: open } = await decideItems(page.items, decide, signal)
      if (open > 0 && open === page.items.length) throw new GatehouseError('DECISION_UNAVAILABLE')
      return allowed.length === page.items.length && !page.incomplete ? result : withItems(row, page, allowed)
    },

    close: () => point.close(),
  }
}

/** As the policies are asked, with the arguments of prompts too; none for what nobody has a say in. */
function questionsOf(method: string, params: JsonObject): readonly AccessRequest[] {
  const questions = accessRequestsOf(method, params) ?? []
  if (questions.length > maxQuestions) {
    throw new GatehouseError('INVALID_PARAMS', {
      detail: `Invalid params: at most ${maxQuestions} resources at once`,
    })
  }
  if (method !== 'prompts/get') return questions
  return questions.map((question) => ({ ...question, arguments: params.raw('arguments') }))
}

/** Narrows settings of a decision point. */
export function isExternal(
  authz: RuntimeAuthz | undefined,
): authz is RuntimeAuthz & { readonly httpv1: RuntimeDecisionPoint } {
  return authz?.type === 'httpv1' && authz.httpv1 !== undefined
}

/** What keeps the decision point from being asked: files that cannot be read. */
export function externalViolations({ httpv1 }: { readonly httpv1: RuntimeDecisionPoint }): readonly string[] {
  try {
    void makeDecisionPoint(httpv1, () => {}).close()
    return []
  } catch (error) {
    if (error instanceof GatehouseError) return [error.message]
    throw error
  }
}
