/** Scans a JSON value with a set of rules, and returns the findings and the resulting value. */
import { inTurns, type TurnWork, joined } from '../../../../mcp/index.ts'
import type { ActiveRule, PointerPattern } from '../rules.ts'
import { type Findings, JsonScan, type ScanOptions, type Replacement } from './json-scan.ts'

/** Number of pieces after which `spliced` yields to other work. */
const slicePieces = 4_000

/** Outcomes of a match, keyed by the rule's action. */
const outcomes = {
  mask: 'masked',
  observe: 'observed',
  mark: 'marked',
  strip: 'stripped',
  escape: 'escaped',
  refuse: 'refused',
} as const

/** A rule's matches. */
export interface GuardrailFinding {
  readonly rule: string
  readonly outcome: 'refused' | (typeof outcomes)[ActiveRule['action']]
  readonly count: number
}

export interface ScanResult {
  /** The value with replacements. Without replacements, these are the original bytes. */
  readonly bytes: Buffer
  readonly findings: readonly GuardrailFinding[]
  /** The rule that refuses the value. */
  readonly refusedBy: string | undefined
}

/** Opaque state and message identifiers, which contain no text to scan. */
const skips: readonly PointerPattern[] = [['requestState'], ['progressToken'], ['_meta', 'progressToken']]

/** Scans a value. Rejects with ScanLimit or another scan error, or with the signal's reason. */
export function scanInTurns(
  bytes: Buffer,
  rules: readonly ActiveRule[],
  { signal, ...options }: ScanOptions & { readonly signal?: AbortSignal | undefined } = {},
): ScanResult | Promise<ScanResult> {
  const work = scanValue(bytes, rules, { skips, ...options }, signal)
  // A small value may still require a lot of work. The scan continues in later turns if the first slice is not
  // sufficient.
  const first = work.next()
  return first.done ? first.value : inTurns(work)
}

export function* scanValue(
  bytes: Buffer,
  rules: readonly ActiveRule[],
  options: ScanOptions,
  signal: AbortSignal | undefined,
): TurnWork<ScanResult> {
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

/** Replaces ranges of bytes and keeps all other bytes. The edits must be in ascending order and must not overlap. */
function* spliced(bytes: Buffer, edits: readonly Replacement[]): TurnWork<Buffer> {
  if (edits.length === 0) return bytes
  const pieces: Buffer[] = []
  let at = 0
  for (const { from, to, text } of edits) {
    pieces.push(bytes.subarray(at, from), Buffer.from(text))
    at = to
    if (pieces.length % slicePieces === 0) yield
  }
  pieces.push(bytes.subarray(at))
  return yield* joined(pieces)
}
