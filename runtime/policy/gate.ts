/**
 * Authorization of MCP traffic, whoever carries it: one check before a request is acted on, one filter for lists.
 *
 * Works on caller, method and params alone, so the virtual server and the single-server proxy share it. Stands after
 * authentication, before the rate limit and before anything looks up what was named: a caller who may not use something
 * spends nothing and learns nothing about whether it exists.
 * Source: docs/specification/virtual-server.md#authentication, authentication (incoming, 2); design, section 3 "Request".
 */
import { setImmediate } from 'node:timers/promises'
import { GatehouseError } from '../../schemas/index.ts'
import type { JsonObject } from '../mcp/index.ts'
import type { Caller } from '../net/index.ts'
import type { Authorizer } from './authorizer.ts'
import { type ListedItem, type ParsedList, parseList, withItems } from './list-filter.ts'
import { lists, type AccessRequest, accessRequestsOf, refusal, type ToolHints } from './requests.ts'
import type { PolicySubject } from './subject.ts'

/**
 * What is known of a tool's hints: the hints, that there is no such tool, or nothing. `later`: the request goes no
 * further than where it is checked again, with a response. An error: why they cannot be known now.
 */
export type HintsResponse = ToolHints | GatehouseError | 'no such tool' | 'later' | undefined

export interface CheckOptions {
  readonly signal?: AbortSignal | undefined
  /** Asked only when a policy that can apply reads hints. Where nothing is known, such a call is refused. */
  readonly hintsOf?: ((tool: string) => HintsResponse | Promise<HintsResponse>) | undefined
}

export interface GateOptions {
  /**
   * Methods that the policies have no action for: `refuse` where they would reach a server that may know them, `pass`
   * where the next one refuses them itself.
   */
  readonly unknownMethods: 'pass' | 'refuse'
  /** Tools of the gateway itself, permitted by switching them on; a policy can still forbid them. */
  readonly granted?: ((tool: string) => boolean) | undefined
}

export interface Gate {
  /**
   * Resolves when the request may go on. Rejects with FORBIDDEN, with INVALID_PARAMS when the request does not say what
   * it is about, and with what the source of upstream tokens rejects with. Notifications are checked like requests.
   */
  check(caller: Caller, method: string, params: JsonObject, options?: CheckOptions): Promise<void>
  /**
   * The raw result of a list as this caller may see it; the same buffer when nothing had to go, or when the method is
   * no list. Rejects with BACKEND_PROTOCOL when it is no list although it should be.
   */
  filter(caller: Caller, method: string, result: Buffer, signal?: AbortSignal): Promise<Buffer>
}

/** After so long a filter lets others have a turn. */
const turnMs = 5
/** Cached views of one page of a list. */
const maxViews = 64

/** A page of a list: taken apart once, with the views of it by fingerprint of the caller. */
interface Page extends ParsedList {
  readonly views: Map<string, Buffer>
}

export function makeGate(authorizer: Authorizer, options: GateOptions): Gate {
  const pages = new WeakMap<Buffer, Page>()

  function allows(subject: PolicySubject, question: AccessRequest): boolean {
    const decision = authorizer.decide(subject, question)
    if (decision === 'permitted') return true
    return (
      decision === 'unmentioned' && question.action === 'call_tool' && options.granted?.(question.id) === true
    )
  }

  async function checkOne(
    subject: PolicySubject,
    question: AccessRequest,
    { hintsOf }: CheckOptions,
  ): Promise<void> {
    if (!authorizer.readsHints(subject, question) || options.granted?.(question.id) === true) {
      if (!allows(subject, question)) throw refusal(question.action)
      return
    }
    const hints = await hintsOf?.(question.id)
    if (hints === 'later') return
    const known = hints === 'no such tool' || hints instanceof GatehouseError ? undefined : hints
    if (!allows(subject, { ...question, hints: known })) throw refusal(question.action)
    if (known) return
    // Permitted only as long as nothing is known of the tool: it must not come into being on the way to it.
    if (hints === undefined) throw refusal(question.action)
    if (hints instanceof GatehouseError) throw hints
    throw new GatehouseError('INVALID_PARAMS', { detail: `tool ${JSON.stringify(question.id)} not found` })
  }

  async function allowedOf(
    subject: PolicySubject,
    items: readonly ListedItem[],
    method: string,
    signal: AbortSignal | undefined,
  ): Promise<ListedItem[]> {
    const action = lists[method]?.action ?? 'call_tool'
    const allowed: ListedItem[] = []
    let began = performance.now()
    for (const item of items) {
      if (allows(subject, { action, id: item.id, hints: item.hints })) allowed.push(item)
      if (performance.now() - began < turnMs) continue
      await setImmediate()
      signal?.throwIfAborted()
      began = performance.now()
    }
    return allowed
  }

  return {
    async check(caller, method, params, checkOptions = {}) {
      const questions = accessRequestsOf(method, params)
      if (!questions) {
        if (options.unknownMethods === 'refuse') throw refusal('call_tool')
        return
      }
      if (questions.length === 0) return
      const subject = await authorizer.subject(caller, checkOptions.signal)
      for (const question of questions) await checkOne(subject, question, checkOptions)
    },

    async filter(caller, method, result, signal) {
      const row = lists[method]
      if (!row) return result
      const subject = await authorizer.subject(caller, signal)
      const page: Page = pages.get(result) ?? { ...parseList(row, result), views: new Map() }
      pages.set(result, page)
      const known = page.views.get(subject.fingerprint)
      if (known) return known
      const allowed = await allowedOf(subject, page.items, method, signal)
      const isWhole = allowed.length === page.items.length && !page.incomplete
      const view = isWhole ? result : withItems(row, page, allowed)
      if (page.views.size >= maxViews) page.views.clear()
      page.views.set(subject.fingerprint, view)
      return view
    },
  }
}
