/**
 * Queries an external decision point about decisions recorded in the audit log, and reports which decisions would
 * change.
 *
 * A line without the complete query is inconclusive, because the replay never guesses a decision. Lines that were
 * denied because of a failure, and lines for which the query now fails, are also inconclusive.
 * Source: docs/guides/decision-point.md.
 */
import type { RecordedLine } from '../recorded.ts'
import { type Replay, ReplayTally } from '../replay-tally.ts'
import type { RuntimePoint } from './explain.ts'
import type { TriedPoint } from './inquire.ts'

export interface PointReplay extends Replay {
  /** Number of lines that were not queried. */
  readonly elsewhere: number
}

/** If `tried` is undefined, no query is sent and no line is compared. */
export async function replayAtPoint(
  { point: { settings } }: RuntimePoint,
  tried: TriedPoint | undefined,
  lines: Iterable<string> | AsyncIterable<string>,
): Promise<PointReplay> {
  const tally = new ReplayTally()
  for await (const text of lines) {
    const line = tally.read(text)
    if (!line || !tried) continue
    const outcome = await replayLine(line, tried, settings.context?.includeArgs ?? false)
    if ('lacks' in outcome) tally.lacks([outcome.lacks])
    else tally.decided(line, outcome.to, [tried.type])
  }
  return { ...tally.result([]), elsewhere: tried ? 0 : tally.decisions }
}

async function replayLine(
  line: RecordedLine,
  tried: TriedPoint,
  needsArguments: boolean,
): Promise<{ readonly to: 'allow' | 'deny' } | { readonly lacks: string }> {
  const { inputs, request, principal, elsewhere } = line
  if (elsewhere === 'failed') return { lacks: 'a decision' }
  // The attributes contain the claims sent to a decision point. For policies, they contain only the claims that
  // policies read.
  const claims = inputs?.claims ?? (elsewhere ? inputs?.attributes : undefined)
  if (!claims) return { lacks: 'claims' }
  if (request.action === 'call_tool' && !inputs?.hints) return { lacks: 'tool hints' }
  if (needsArguments && request.action !== 'read_resource' && inputs?.arguments === undefined)
    return { lacks: 'arguments' }
  const reply = await tried.ask({
    ...request,
    claims,
    subject: principal,
    arguments: inputs?.arguments,
    ...(inputs?.hints ? { hints: inputs.hints } : {}),
  })
  return reply.decision === 'none'
    ? { lacks: `a current decision (${reply.failure})` }
    : { to: reply.decision }
}
