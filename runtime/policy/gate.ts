/**
 * Authorizes MCP traffic: one check before a request is executed, and one filter for lists.
 *
 * Uses only the caller, method and params, so that the virtual server and the single-server proxy can share it. Runs
 * after authentication, and before the rate limit and any lookup. A denied request therefore does not consume any quota
 * and does not reveal whether its target exists.
 * Source: docs/reference/specification/virtual-server.md#authentication, authentication (incoming, 2); ARCHITECTURE.md,
 * "A tool call".
 */
import { setImmediate } from 'node:timers/promises'
import { GatehouseError, own } from '../../schemas/index.ts'
import type { JsonObject } from '../mcp/index.ts'
import type { Caller } from '../net/index.ts'
import type { Authorizer } from './authorizer.ts'
import { type ListedItem, type ParsedList, parseList, withItems } from './list-filter.ts'
import { inputsOf, type InputsMode, type PolicyInputs } from './inputs.ts'
import { type AccessRequest, accessRequestsOf, type Facts, lists, type Origin, refusal } from './requests.ts'
import type { PolicySubject } from './subject.ts'
import { undecided, type PolicyVerdict } from './verdict.ts'

/**
 * The facts about a request's target, or `no such thing` if the target does not exist; undefined if neither is known.
 * With `later`, a later stage checks the target again and sends the response. An error explains why the facts are
 * unavailable.
 */
export type FactsResponse = Facts | GatehouseError | 'no such thing' | 'later' | undefined

export interface CheckOptions {
  readonly signal?: AbortSignal | undefined
  /** Called only if an applicable policy reads hints or origins. Without facts, such a request is denied. */
  readonly factsOf?: ((request: AccessRequest) => FactsResponse | Promise<FactsResponse>) | undefined
  /** Like `factsOf`, but only consults the cache. */
  readonly peekFacts?: ((request: AccessRequest) => Facts | undefined) | undefined
  /** Called for each decision, before a denial is thrown. */
  readonly decided?: ((report: DecisionReport) => void) | undefined
}

/** Explains a single decision to operators. */
export interface DecisionReport {
  /** The query and the facts on which the decision is based. */
  readonly request: AccessRequest
  readonly allowed: boolean
  readonly verdict: PolicyVerdict
  /** Digest of the enforced policies. */
  readonly digest: string
  /** Decision of the shadow policies; undefined without shadow policies, or if they read unknown facts. */
  readonly shadow: { readonly allowed: boolean; readonly verdict: PolicyVerdict } | undefined
  /** Returns the policy inputs, for the audit log. */
  inputs(mode: InputsMode, facts?: Facts): PolicyInputs
}

export interface GateOptions {
  /**
   * How to handle methods without a policy action. Use `refuse` if the methods could reach a server that supports them,
   * and `pass` if the next component rejects the methods.
   */
  readonly unknownMethods: 'pass' | 'refuse'
  /**
   * Returns true for the gateway's own tools, which are allowed while they are enabled. A policy can still forbid these
   * tools.
   */
  readonly granted?: ((tool: string) => boolean) | undefined
  /** Shadow policies, which are evaluated for every checked request but never enforced. */
  readonly shadow?: Authorizer | undefined
}

export interface FilterOptions {
  readonly signal?: AbortSignal
  readonly originOf?: (id: string) => Origin | undefined
}

export interface Gate {
  /**
   * Resolves when the request may continue. Rejects with FORBIDDEN, with INVALID_PARAMS when the request does not
   * identify its target, and with errors from the upstream token source. Notifications are checked like requests.
   */
  check(caller: Caller, method: string, params: JsonObject, options?: CheckOptions): Promise<void>
  /**
   * Returns a list's raw result without the items that the caller is not allowed to see. Returns the same buffer when
   * nothing was removed, or when the method is not a list. Rejects with BACKEND_PROTOCOL for an invalid list.
   */
  filter(caller: Caller, method: string, result: Buffer, options?: FilterOptions): Promise<Buffer>
  /** Releases the resources of the gate. */
  close?(): Promise<void>
}

/** Time in milliseconds after which a filter yields to other work. */
const turnMs = 5
/** Cached views of a list page. */
const maxViews = 64

/** A parsed page of a list, with its filtered versions, keyed by caller fingerprint. */
interface Page extends ParsedList {
  readonly views: Map<string, Buffer>
}

/** The caller as each set of policies sees it. */
interface Subjects {
  readonly enforced: PolicySubject
  readonly shadow: PolicySubject | undefined
}

export function makeGate(authorizer: Authorizer, options: GateOptions): Gate {
  return new PolicyGate(authorizer, options)
}

class PolicyGate implements Gate {
  readonly #authorizer: Authorizer
  readonly #options: GateOptions
  readonly #pages = new WeakMap<Buffer, Page>()

  constructor(authorizer: Authorizer, options: GateOptions) {
    this.#authorizer = authorizer
    this.#options = options
  }

  async check(
    caller: Caller,
    method: string,
    params: JsonObject,
    checkOptions: CheckOptions = {},
  ): Promise<void> {
    const questions = accessRequestsOf(method, params)
    if (!questions) {
      if (this.#options.unknownMethods === 'refuse') throw refusal('call_tool')
      return
    }
    if (questions.length === 0) return
    const subjects = await this.#subjectsOf(caller, checkOptions.signal)
    for (const question of questions) await this.#checkOne(subjects, question, checkOptions)
  }

  async filter(
    caller: Caller,
    method: string,
    result: Buffer,
    filterOptions: FilterOptions = {},
  ): Promise<Buffer> {
    const row = own(lists, method)
    if (!row) return result
    const subject = await this.#authorizer.subject(caller, filterOptions.signal)
    const page: Page = this.#pages.get(result) ?? { ...parseList(row, result), views: new Map() }
    this.#pages.set(result, page)
    const known = page.views.get(subject.fingerprint)
    if (known) return known
    const allowed = await this.#allowedOf(subject, page.items, method, filterOptions)
    const isWhole = allowed.length === page.items.length && !page.incomplete
    const view = isWhole ? result : withItems(row, page, allowed)
    if (page.views.size >= maxViews) page.views.clear()
    page.views.set(subject.fingerprint, view)
    return view
  }

  #isAllowed({ action, id }: AccessRequest, { decision }: PolicyVerdict): boolean {
    if (decision === 'permitted') return true
    return decision === 'unmentioned' && action === 'call_tool' && this.#options.granted?.(id) === true
  }

  #allows(subject: PolicySubject, question: AccessRequest): boolean {
    return this.#isAllowed(question, this.#authorizer.verdict(subject, question))
  }

  /** Returns undefined if there are no shadow policies. Never throws: shadow policy errors must not affect requests. */
  #shadowed(subjects: Subjects, question: AccessRequest): DecisionReport['shadow'] {
    if (!this.#options.shadow) return undefined
    try {
      const verdict = subjects.shadow ? this.#options.shadow.verdict(subjects.shadow, question) : undecided
      return { allowed: this.#isAllowed(question, verdict), verdict }
    } catch {
      return { allowed: false, verdict: undecided }
    }
  }

  async #subjectsOf(caller: Caller, signal: AbortSignal | undefined): Promise<Subjects> {
    const enforced = await this.#authorizer.subject(caller, signal)
    // If the upstream claims are missing, the shadow policies do not permit anything.
    const shadow = await this.#options.shadow?.subject(caller, signal).catch(() => undefined)
    return { enforced, shadow }
  }

  #shadowReadsFacts({ shadow }: Subjects, question: AccessRequest): boolean {
    try {
      return shadow !== undefined && this.#options.shadow?.readsFacts(shadow, question) === true
    } catch {
      return false
    }
  }

  async #checkOne(
    subjects: Subjects,
    question: AccessRequest,
    { factsOf, peekFacts, decided }: CheckOptions,
  ): Promise<void> {
    const subject = subjects.enforced
    const isGranted = this.#options.granted?.(question.id) === true
    const isRead = !isGranted && this.#authorizer.readsFacts(subject, question)
    const facts = isRead ? await factsOf?.(question) : undefined
    if (facts === 'later') return
    const known = factsIn(facts)
    const request = { ...question, ...known }
    const verdict = this.#authorizer.verdict(subject, request)
    const allowed = this.#isAllowed(request, verdict)
    const shadowLacks = decided && !known && !isGranted && this.#shadowReadsFacts(subjects, question)
    // Shadow policies do not cause lookups for a denied request, and never deny a request.
    const shadowFacts = !shadowLacks
      ? known
      : allowed
        ? factsIn(await Promise.resolve(factsOf?.(question)).catch(() => undefined))
        : peekFacts?.(question)
    decided?.({
      request,
      allowed,
      verdict,
      digest: this.#authorizer.digest,
      shadow:
        shadowLacks && !shadowFacts ? undefined : this.#shadowed(subjects, { ...request, ...shadowFacts }),
      inputs: (mode, more) =>
        inputsOf(mode, { authorizer: this.#authorizer, subject, request: { ...more, ...request } }),
    })
    if (!allowed) throw refusal(question.action)
    if (known || !isRead) return
    // Denies a request that is permitted only while the target does not exist, because the target could appear before
    // the request arrives.
    if (facts === undefined) throw refusal(question.action)
    if (facts instanceof GatehouseError) throw facts
    throw notFound(question)
  }

  async #allowedOf(
    subject: PolicySubject,
    items: readonly ListedItem[],
    method: string,
    { signal, originOf }: FilterOptions,
  ): Promise<ListedItem[]> {
    const action = own(lists, method)?.action ?? 'call_tool'
    const allowed: ListedItem[] = []
    let began = performance.now()
    for (const item of items) {
      const { id, hints } = item
      if (this.#allows(subject, { action, id, hints, origin: originOf?.(id) })) allowed.push(item)
      if (performance.now() - began < turnMs) continue
      await setImmediate()
      signal?.throwIfAborted()
      began = performance.now()
    }
    return allowed
  }
}

function factsIn(facts: FactsResponse): Facts | undefined {
  return typeof facts === 'string' || facts instanceof GatehouseError ? undefined : facts
}

/** Uses the core's error text, so clients cannot distinguish the two responses. */
export function notFound({ action, id }: AccessRequest): GatehouseError {
  if (action === 'read_resource') return new GatehouseError('RESOURCE_NOT_FOUND', { data: { uri: id } })
  const what = action === 'call_tool' ? 'tool' : 'prompt'
  return new GatehouseError('INVALID_PARAMS', { detail: `${what} ${JSON.stringify(id)} not found` })
}
