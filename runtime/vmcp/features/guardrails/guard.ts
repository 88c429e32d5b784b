/**
 * Applies the guardrails to a backend call. Guardrails scan the call's arguments, its result, and all messages and
 * requests that the backend sends during the call. Guardrails also scan messages and requests that a backend sends
 * outside any call.
 *
 * The guard directly wraps the backend, so every call passes through it: plain calls, tool search, scripts, workflow
 * steps, and calls from the console. The guard sees the arguments as modified by request webhooks, and response
 * webhooks see the filtered result. The guard fails closed. Data that cannot be scanned is refused.
 * Source: docs/guides/guardrails.md.
 */
import { GatehouseError } from '../../../../schemas/index.ts'
import { type Ask, type AskReply, JsonObject, updatedMethod } from '../../../mcp/index.ts'
import type { CatalogEntry } from '../../model/catalog/entry.ts'
import type { MatchSchemas } from '../../model/catalog/pinning.ts'
import type { SessionListener } from '../../backends/session-era/connections.ts'
import type { ClientSession } from '../../model/session.ts'
import {
  deriveContext,
  type Link,
  type Operation,
  type Perform,
  type Target,
  withParams,
} from '../../model/operation.ts'
import { type Outcome, toolErrorOutcome } from '../../model/outcome.ts'
import { changeTaskResult } from '../../model/task.ts'
import type { ResponseLimit } from '../../model/delivery.ts'
import { type GuardrailFinding, type ScanResult, scanInTurns } from './scan/scan-value.ts'
import { delimitedBy, frameOf } from './marks.ts'
import { Notes } from './notes.ts'
import { type ActiveRule, type CompiledRule, type Direction, rulesFor, type Subject } from './rules.ts'
import type { ScanOptions } from './scan/json-scan.ts'
import { fitsOutput } from './output.ts'
import { argumentBytes, type CompiledSize, limitsFor, type SizeLimit, tooLarge } from './sizes.ts'

/** The outcome of a scan. */
export interface GuardrailDecision extends Subject {
  readonly direction: Direction
  /** The finding. Undefined if the guardrails failed. */
  readonly finding: GuardrailFinding | undefined
  readonly error?: unknown
}

export interface GuardrailParts {
  readonly observe: (decision: GuardrailDecision) => void
  /** Returns the schema matcher for a call. */
  readonly matcherFor: (operation: Pick<Operation, 'client' | 'context'>, entry: CatalogEntry) => MatchSchemas
}

/**
 * Members that identify the target of a call or of a request to a user. Changing one of these members would change the
 * call.
 */
const fixed = [['name'], ['uri'], ['ref'], ['taskId']] as const

/** Methods of the messages that backends send outside any call. All other methods are reported as `other`. */
const saidUnasked: ReadonlySet<string> = new Set([
  'notifications/message',
  'notifications/elicitation/complete',
  updatedMethod,
])

/** A refusal whose message is sent to clients. */
class Refusal extends GatehouseError {}

/** The transport stopped reading a result that is too large. */
class ResultTooLarge extends Refusal {}

export interface GuardRules {
  readonly redact: readonly CompiledRule[]
  readonly sizes: readonly CompiledSize[]
  /** The rules for hidden characters. */
  readonly hidden: readonly CompiledRule[]
  readonly delimited: readonly CompiledRule[]
}

export class Guard {
  readonly #rules: GuardRules
  readonly #parts: GuardrailParts
  /** Notifications that backends have sent outside any call, keyed by session and backend. */
  readonly #notesOf = new WeakMap<ClientSession, Map<string, Notes>>()

  constructor(rules: GuardRules, parts: GuardrailParts) {
    this.#rules = rules
    this.#parts = parts
  }

  /**
   * Checks a call and its result. For a refused tool call, returns a result that a model can read. For other methods,
   * rejects with FORBIDDEN.
   */
  readonly link: Link = (operation, next) => {
    const { target } = operation
    return target ? this.#around(operation, target, next) : next(operation)
  }

  async #around(operation: Operation, target: Target, next: Perform): Promise<Outcome> {
    const { entry, isStep } = target
    const { context } = operation
    // The rules of the tool also apply to the late result of a task.
    const method = operation.task ? 'tools/call' : operation.method
    const subject: Subject = { method, backend: entry.backend, original: entry.original }
    const { outgoing, incoming, hidden } = this.#directions(subject)
    // Programs read text literally, so text for programs has no delimiters.
    const isForProgram = operation.isForProgram === true || isStep === true
    const delimited = isForProgram ? [] : delimitedBy(this.#rules.delimited, subject)
    const sizes = limitsFor(this.#rules.sizes, subject)
    const rules = outgoing.length + incoming.length + hidden.length + delimited.length
    const isFree = rules === 0 && !sizes.arguments && !sizes.results
    if (isFree) return next({ ...operation, target: { ...target, needsWholeResult: true } })
    const limit = responseLimit(sizes.results, subject)
    try {
      this.#requireSize(argumentBytes(operation.params), sizes.arguments, 'arguments', subject)
      const params = await this.#params(operation, outgoing, subject)
      const notes = incoming.length > 0 ? this.#notes(context.signal, incoming, subject) : undefined
      const guarded = deriveContext(context, {
        ...notes?.sinksOf(context),
        ask: (request, signal) =>
          this.#ask(request, {
            ask: (shown) => context.ask(shown, signal),
            signal: signal ?? context.signal,
            rules: { outgoing, incoming, hidden, subject, size: sizes.arguments },
          }),
      })
      const outcome = await next({
        ...withParams(operation, params),
        context: guarded,
        target: { ...target, limit, needsWholeResult: true },
      })
      await notes?.end()
      this.#requireSize(bodyOf(outcome).length, sizes.results, 'results', subject)
      const check = async (found: Outcome): Promise<Outcome> => {
        const scanned = await this.#outcome(operation, entry, found, [hidden, incoming], subject)
        return this.#delimited(operation, scanned, delimited, subject)
      }
      if (!operation.task) return await check(outcome)
      return await checkTask(operation.method, outcome, check, (rest) =>
        this.#passes(rest, [hidden, incoming], { subject, direction: 'results', signal: context.signal }),
      )
    } catch (error) {
      if (error instanceof ResultTooLarge && sizes.results)
        this.#reportSize(sizes.results, 'results', subject)
      const hasToolResult = operation.method === 'tools/call' || operation.method === 'tasks/result'
      if (!(error instanceof Refusal) || !hasToolResult) throw error
      return toolErrorOutcome(error.message)
    }
  }

  /**
   * Wraps a session for messages that a backend sends outside any call. Rules for specific tools do not apply to these
   * messages.
   */
  outsideCalls(backend: string, session: ClientSession): SessionListener {
    const subjectOf = (method: string): Subject => ({ method, backend, original: undefined })
    return {
      deliver: (_backend, method, params) => {
        const subject = subjectOf(saidUnasked.has(method) ? method : 'other')
        const rules = rulesFor(this.#rules.redact, 'results', subject)
        if (!params || rules.length === 0) {
          session.deliver(backend, method, params)
          return
        }
        const send = (bytes: Buffer): void => session.deliver(backend, method, bytes)
        this.#sessionNotes(session, rules, subject).take(params, send)
      },
      ask: (request, signal) => {
        const subject = subjectOf(request.method)
        const ask = (shown: Ask): Promise<AskReply> => session.ask(shown, signal)
        return this.#ask(request, { ask, signal, rules: { ...this.#directions(subject), subject } })
      },
    }
  }

  #directions(subject: Subject): Pick<Directions, 'outgoing' | 'incoming' | 'hidden'> {
    const { redact, hidden } = this.#rules
    return {
      outgoing: rulesFor(redact, 'arguments', subject),
      incoming: rulesFor(redact, 'results', subject),
      hidden: rulesFor(hidden, 'results', subject),
    }
  }

  /** Returns one instance for each session and backend, so the backend's messages stay in order. */
  #sessionNotes(session: ClientSession, rules: readonly ActiveRule[], subject: Subject): Notes {
    const known = this.#notesOf.get(session) ?? new Map<string, Notes>()
    this.#notesOf.set(session, known)
    const notes = known.get(subject.backend) ?? this.#notes(new AbortController().signal, rules, subject)
    known.set(subject.backend, notes)
    return notes
  }

  async #params(
    { params, context: { signal } }: Operation,
    rules: readonly ActiveRule[],
    subject: Subject,
  ): Promise<JsonObject> {
    if (rules.length === 0) return params
    const { bytes } = await this.#scan(params.bytes, rules, {
      subject,
      direction: 'arguments',
      signal,
      fixed,
    })
    return bytes === params.bytes ? params : new JsonObject(bytes)
  }

  #notes(signal: AbortSignal, rules: readonly ActiveRule[], subject: Subject): Notes {
    return new Notes(signal, rules, {
      found: (findings) => this.#report(subject, 'results', findings),
      failed: (error) => this.#parts.observe({ ...subject, direction: 'results', finding: undefined, error }),
    })
  }

  /** Scans a request that a backend sends to the client. Also scans the client's response to the backend. */
  async #ask(
    { method, params }: Ask,
    { ask, signal, rules: { outgoing, incoming, hidden, subject, size } }: AskOptions,
  ): Promise<AskReply> {
    const options = { subject, direction: 'results', signal } as const
    const shown = params && (await this.#passes(params, [hidden, incoming], options))
    const reply = await ask({ method, params: shown })
    const given = reply.result ?? reply.error
    if (given) this.#requireSize(given.length, size, 'arguments', subject)
    if (!given || outgoing.length === 0) return reply
    const { bytes } = await this.#scan(given, outgoing, { subject, direction: 'arguments', signal })
    return reply.result ? { result: bytes } : { error: bytes }
  }

  async #outcome(
    operation: Operation,
    entry: CatalogEntry,
    outcome: Outcome,
    passes: readonly (readonly ActiveRule[])[],
    subject: Subject,
  ): Promise<Outcome> {
    const body = bodyOf(outcome)
    const { signal } = operation.context
    const bytes = await this.#passes(body, passes, { subject, direction: 'results', signal })
    if (bytes === body) return outcome
    if (outcome.kind === 'error') return { kind: 'error', error: bytes }
    if (
      outcome.kind === 'result' &&
      !(await fitsOutput(entry, body, bytes, this.#parts.matcherFor(operation, entry)))
    )
      throw new Refusal('FORBIDDEN', {
        detail: "result withheld: the modified result does not match the tool's output schema",
      })
    return { kind: outcome.kind, result: bytes }
  }

  async #delimited(
    { context: { signal } }: Operation,
    outcome: Outcome,
    rules: readonly ActiveRule[],
    subject: Subject,
  ): Promise<Outcome> {
    // Requests for input are meant for users, so the texts have no delimiters.
    if (rules.length === 0 || outcome.kind === 'input' || outcome.kind === 'task') return outcome
    const options = { subject, direction: 'results', signal, frame: frameOf(subject) } as const
    const { bytes } = await this.#scan(bodyOf(outcome), rules, options)
    return outcome.kind === 'error' ? { kind: 'error', error: bytes } : { kind: 'result', result: bytes }
  }

  /**
   * Applies the rules one after another. Hidden characters are removed first, because such characters could hide a
   * secret. Rejects with Refusal.
   */
  async #passes(
    body: Buffer,
    passes: readonly (readonly ActiveRule[])[],
    options: LookOptions,
  ): Promise<Buffer> {
    let bytes = body
    for (const rules of passes) if (rules.length > 0) bytes = (await this.#scan(bytes, rules, options)).bytes
    return bytes
  }

  /** Scans a value. Rejects with Refusal if a rule refuses the value. */
  async #scan(
    bytes: Buffer,
    rules: readonly ActiveRule[],
    { subject, direction, signal, ...options }: LookOptions,
  ): Promise<ScanResult> {
    let scanned: ScanResult
    try {
      scanned = await scanInTurns(bytes, rules, { ...options, signal })
    } catch (error) {
      if (signal.aborted) throw error
      this.#parts.observe({ ...subject, direction, finding: undefined, error })
      throw new Refusal('GUARDRAIL_FAILED', { cause: error })
    }
    this.#report(subject, direction, scanned.findings)
    const { refusedBy } = scanned
    if (refusedBy === undefined) return scanned
    throw new Refusal('FORBIDDEN', {
      detail:
        direction === 'arguments'
          ? `call rejected by guardrail ${refusedBy}`
          : `result withheld by guardrail ${refusedBy}`,
    })
  }

  /** Checks a size. Throws Refusal if the size exceeds the limit. */
  #requireSize(size: number, limit: SizeLimit | undefined, direction: Direction, subject: Subject): void {
    if (!limit || size <= limit.bytes) return
    this.#reportSize(limit, direction, subject)
    throw new Refusal('FORBIDDEN', { detail: tooLarge(limit, direction, subject) })
  }

  #reportSize({ rule }: SizeLimit, direction: Direction, subject: Subject): void {
    this.#report(subject, direction, [{ rule, outcome: 'refused', count: 1 }])
  }

  #report(subject: Subject, direction: Direction, findings: readonly GuardrailFinding[]): void {
    for (const finding of findings) this.#parts.observe({ ...subject, direction, finding })
  }
}

/**
 * Checks the outcome of a request about a task. `check` checks the tool result, and `pass` all other members. A refused
 * tool result becomes a result that a model can read.
 */
async function checkTask(
  method: string,
  outcome: Outcome,
  check: (outcome: Outcome) => Promise<Outcome>,
  pass: (rest: Buffer) => Promise<Buffer>,
): Promise<Outcome> {
  if (method === 'tasks/result' || outcome.kind !== 'result') return check(outcome)
  const checked = await changeTaskResult(method, outcome, (result) =>
    check(result).catch((error: unknown) => {
      if (error instanceof Refusal) return toolErrorOutcome(error.message)
      throw error
    }),
  )
  if (checked.kind !== 'result') return checked
  const task = new JsonObject(checked.result)
  const kept = Object.fromEntries(
    ['taskId', 'result', 'error'].map((name) => [name, task.raw(name)] as const),
  )
  const rest = task.with({ taskId: undefined, result: undefined, error: undefined })
  const passed = await pass(rest)
  if (passed === rest) return checked
  return { kind: 'result', result: new JsonObject(passed).with(kept) }
}

interface AskOptions {
  readonly ask: (request: Ask) => Promise<AskReply>
  readonly signal: AbortSignal
  readonly rules: Directions
}

interface Directions {
  readonly outgoing: readonly ActiveRule[]
  readonly incoming: readonly ActiveRule[]
  readonly hidden: readonly ActiveRule[]
  readonly subject: Subject
  /** Size limit for the client's response. */
  readonly size?: SizeLimit | undefined
}

interface LookOptions extends ScanOptions {
  readonly subject: Subject
  readonly direction: Direction
  readonly signal: AbortSignal
}

/** Returns the size at which the transport stops reading. */
function responseLimit(limit: SizeLimit | undefined, subject: Subject): ResponseLimit | undefined {
  if (!limit) return undefined
  const error = (): GatehouseError =>
    new ResultTooLarge('FORBIDDEN', { detail: tooLarge(limit, 'results', subject) })
  return { bytes: limit.bytes, error }
}

function bodyOf(outcome: Outcome): Buffer {
  return outcome.kind === 'error' ? outcome.error : outcome.result
}
