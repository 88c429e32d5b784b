/** Looks through one JSON value by some rules: what was found, and the value as it goes on. */
import { inTurns, type TurnWork } from '../../../../mcp/index.ts'
import type { PointerPattern } from './pointers.ts'
import type { ActiveRule } from '../rules.ts'
import { type Findings, JsonScan, type ScanOptions } from './scan.ts'
import { spliced } from './splice.ts'

/** What has become of matches of a rule that does not refuse the value. */
const outcomes = {
  mask: 'masked',
  observe: 'observed',
  mark: 'marked',
  strip: 'stripped',
  escape: 'escaped',
  refuse: 'refused',
} as const

/** What came of one rule. */
export interface GuardrailFinding {
  readonly rule: string
  readonly outcome: 'refused' | (typeof outcomes)[ActiveRule['action']]
  readonly count: number
}

export interface Looked {
  /** The value with what is to be masked replaced; the same bytes when nothing is. */
  readonly bytes: Buffer
  readonly findings: readonly GuardrailFinding[]
  /** The rule that refuses the value. */
  readonly refusedBy: string | undefined
}

/** Opaque state, and what identifies messages: no texts of a call. */
const skips: readonly PointerPattern[] = [['requestState'], ['progressToken'], ['_meta', 'progressToken']]

/** Rejects with ScanLimit, or whatever the engine fails with; with the signal's reason when it fires before the end. */
export function lookThrough(
  bytes: Buffer,
  rules: readonly ActiveRule[],
  { signal, ...options }: ScanOptions & { readonly signal?: AbortSignal | undefined } = {},
): Looked | Promise<Looked> {
  const work = look(bytes, rules, { skips, ...options }, signal)
  // Few bytes may be much work: what the first slice does not end goes on in later turns.
  const first = work.next()
  return first.done ? first.value : inTurns(work)
}

export function* look(
  bytes: Buffer,
  rules: readonly ActiveRule[],
  options: ScanOptions,
  signal: AbortSignal | undefined,
): TurnWork<Looked> {
  const work = new JsonScan(bytes, rules, options).run()
  let step = work.next()
  while (!step.done) {
    signal?.throwIfAborted()
    yield
    step = work.next()
  }
  const { edits, counts, refusedBy } = step.value
  const findings = findingsOf(counts, rules, refusedBy)
  if (refusedBy !== undefined) return { bytes, findings, refusedBy }
  return { bytes: yield* spliced(bytes, edits), findings, refusedBy }
}

function findingsOf(
  counts: Findings['counts'],
  rules: readonly ActiveRule[],
  refusedBy: string | undefined,
): readonly GuardrailFinding[] {
  const actions = new Map(rules.map(({ name, action }) => [name, action]))
  return [...counts].map(([rule, count]) => {
    return { rule, count, outcome: rule === refusedBy ? 'refused' : outcomes[actions.get(rule) ?? 'mask'] }
  })
}
