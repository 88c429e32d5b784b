/** Refuses calls to items that pinning or guardrails withhold, and arguments that the approved definition forbids. */
import { GatehouseError } from '../../../../schemas/index.ts'
import { annotateDenial, type Events, visibleText } from '../../../observe/index.ts'
import type { ArgumentCheck, MatchSchemas, PinReason } from '../../model/catalog/pinning.ts'
import type { RefusedEntry } from '../../model/catalog/entries.ts'
import type { CatalogEntry } from '../../model/catalog/entry.ts'
import type { Link, Operation, Perform } from '../../model/operation.ts'
import { type Outcome, toolErrorOutcome } from '../../model/outcome.ts'

/** A call that pinning refuses. */
export interface PinRefusal {
  readonly backend: string
  readonly item: string
  readonly reason: PinReason
  readonly method: string
}

export interface WithheldCall extends Omit<PinRefusal, 'reason'> {
  readonly rule: string
}

export interface PinParts {
  /** Called for each call that pinning refuses. */
  readonly onRefusal: (refusal: PinRefusal) => void
  /** Called for each call to an item that guardrails have removed from a list. */
  readonly onWithheld: (withheld: WithheldCall) => void
  /** Returns the matcher for an item's arguments. The operation's client is charged for the matcher's work. */
  readonly matcherFor: (
    operation: Pick<Operation, 'client' | 'context'>,
    subject: Pick<CatalogEntry, 'backend' | 'original'>,
  ) => MatchSchemas
}

export function reportRefusals(events: Events): Pick<PinParts, 'onRefusal' | 'onWithheld'> {
  return {
    onRefusal: (refused) => events.emit('pin_refused', refused),
    onWithheld: (call) =>
      events.emit('guardrail_matched', { ...call, direction: 'results', outcome: 'refused', count: 1 }),
  }
}

const maxName = 128
const maxViolations = 10

/** Returns the same error as a policy denial. The reason appears only in the audit log, the log and `/status`. */
export function refusal(
  { backend, original, refused }: RefusedEntry,
  method: string,
  { onRefusal, onWithheld }: Pick<PinParts, 'onRefusal' | 'onWithheld'>,
): GatehouseError {
  const call = { backend, item: visibleText(original.slice(0, maxName)).slice(0, maxName), method }
  if (typeof refused === 'string') {
    annotateDenial(refused)
    onRefusal({ ...call, reason: refused })
  } else {
    annotateDenial('guardrail_refused')
    onWithheld({ ...call, rule: refused.guardrail })
  }
  return new GatehouseError('FORBIDDEN')
}

/**
 * Checks a call's arguments against the approved definition. For a tool call that does not match, returns a result that
 * a model can read. For other methods, rejects with INVALID_PARAMS, because programs send these methods.
 */
export function checkPinnedArguments({ matcherFor }: Pick<PinParts, 'matcherFor'>): Link {
  return function checkPinnedArguments(operation, next) {
    const { entry } = operation.target ?? {}
    return entry?.check ? checked(operation, entry, entry.check, next) : next(operation)
  }

  async function checked(
    operation: Operation,
    entry: CatalogEntry,
    check: ArgumentCheck,
    next: Perform,
  ): Promise<Outcome> {
    const { method, params } = operation
    const violations = await check(params.raw('arguments'), matcherFor(operation, entry))
    if (violations.length === 0) return next(operation)
    const text = unfit(violations)
    if (method === 'tools/call') return toolErrorOutcome(text)
    throw new GatehouseError('INVALID_PARAMS', { detail: `Invalid params: ${text}` })
  }
}

/**
 * Checks the argument to complete and the arguments that the client has already provided. Rejects with INVALID_PARAMS.
 */
export async function requireFittingCompletion(
  { params }: Operation,
  check: ArgumentCheck,
  match: MatchSchemas,
): Promise<void> {
  const name = params.object('argument')?.text('name')
  const own = name === undefined ? undefined : Buffer.from(JSON.stringify({ [name]: '' }))
  const given = params.object('context')?.raw('arguments')
  const violations = [...(await check(own, match)), ...(await check(given, match))]
  if (violations.length > 0)
    throw new GatehouseError('INVALID_PARAMS', { detail: `Invalid params: ${unfit(violations)}` })
}

function unfit(violations: readonly string[]): string {
  return `the arguments do not match the approved definition: ${violations.slice(0, maxViolations).join('; ')}`
}
