/**
 * Asks an external decision point what the audit log says that was decided before: which recorded decisions would change.
 *
 * A line that does not tell what a question holds is inconclusive, never guessed; so is one that was refused for want of a
 * decision, and one that is not decided now.
 * Source: docs/guides/decision-point.md.
 */
import { type RecordedLine, recordedLine } from '../recorded.ts'
import type { Flip, Replay } from '../replay.ts'
import type { RuntimePoint } from './explain.ts'
import type { TriedPoint } from './inquire.ts'

export interface PointReplay extends Replay {
  /** Lines that nobody was asked about. */
  readonly elsewhere: number
}

/** `tried` undefined: nothing is asked, and no line is compared. */
export async function replayAtPoint(
  { point: { settings } }: RuntimePoint,
  tried: TriedPoint | undefined,
  lines: Iterable<string> | AsyncIterable<string>,
): Promise<PointReplay> {
  const counts = { decisions: 0, skipped: 0, unchanged: 0, inconclusive: 0, elsewhere: 0 }
  const flips: Flip[] = []
  const lacking = new Map<string, number>()
  let number = 0
  for await (const text of lines) {
    number++
    const line = recordedLine(text)
    if (!line) {
      if (text.trim() !== '') counts.skipped++
      continue
    }
    counts.decisions++
    if (!tried) {
      counts.elsewhere++
      continue
    }
    const outcome = await replayLine(line, tried, settings.context?.includeArgs ?? false)
    if ('lacks' in outcome) {
      counts.inconclusive++
      lacking.set(outcome.lacks, (lacking.get(outcome.lacks) ?? 0) + 1)
    } else if (outcome.to === line.decision) counts.unchanged++
    else {
      const { principal, request, decision: from } = line
      flips.push({
        line: number,
        principal,
        target: request.id,
        from,
        to: outcome.to,
        policies: [tried.type],
      })
    }
  }
  return { ...counts, lacking: [...lacking].sort(([, a], [, b]) => b - a), flips, idle: [] }
}

async function replayLine(
  line: RecordedLine,
  tried: TriedPoint,
  needsArguments: boolean,
): Promise<{ readonly to: 'allow' | 'deny' } | { readonly lacks: string }> {
  const { inputs, request, principal, elsewhere } = line
  if (elsewhere === 'failed') return { lacks: 'a decision' }
  // What a decision point was told stands in the attributes; of policies these are only what they read.
  const claims = inputs?.claims ?? (elsewhere ? inputs?.attributes : undefined)
  if (!claims) return { lacks: 'claims' }
  if (request.action === 'call_tool' && !inputs?.hints) return { lacks: 'hints of the tool' }
  if (needsArguments && request.action !== 'read_resource' && inputs?.arguments === undefined)
    return { lacks: 'arguments' }
  const reply = await tried.ask({
    ...request,
    claims,
    subject: principal,
    arguments: inputs?.arguments,
    ...(inputs?.hints ? { hints: inputs.hints } : {}),
  })
  return reply.decision === 'none' ? { lacks: `a decision now (${reply.failure})` } : { to: reply.decision }
}
