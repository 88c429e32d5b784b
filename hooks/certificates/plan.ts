/**
 * Decides the next step in the life of the serving certificate. Pure: state and clock in, one step out.
 *
 * The order of a rotation is the point: every client trusts the new authority before any server shows its leaf, and
 * trusts the old one until every server has stopped showing its own.
 *
 *   steady --(renewal due)--> stage: next pair stored, old and new authority trusted
 *   staged --(settled, and trusted everywhere)--> promote: the next pair is served, both authorities still trusted
 *   promoted --(settled)--> retire: only the new authority is trusted
 *   unfit (first run, expired, other names) --> issue: trust the new authority at once, then serve its leaf
 *
 * All state is in one Secret, so a run may stop anywhere and the next one goes on from what is stored.
 */
import { current, fitness, joinBundle, type Pair } from './inspect.ts'

/** Content of the Secret. Empty strings where a key is absent. */
export interface Stored {
  /** What servers show: `tls.crt`, `tls.key`. */
  readonly serving: Pair
  /** What they will show next: `next.crt`, `next.key`. */
  readonly next: Pair
  /** What clients are to trust: `ca.crt`. */
  readonly bundle: string
  /** When the last step was taken; undefined when unknown, which counts as long ago. */
  readonly since: Date | undefined
}

export interface PlanInput {
  readonly stored: Stored
  /** True when every client configuration holds exactly `stored.bundle`. */
  readonly trustedEverywhere: boolean
  readonly names: readonly string[]
  readonly now: Date
  readonly renewBeforeMs: number
  /** How long clients and servers get to reload a change. */
  readonly settleMs: number
  /** Rotate although renewal is not due; the caller clears it once a rotation is in flight. */
  readonly force: boolean
}

export type RotationStep =
  | { readonly do: 'issue'; readonly why: string; readonly keep: readonly string[] }
  | { readonly do: 'stage'; readonly why: string; readonly keep: readonly string[] }
  | { readonly do: 'promote'; readonly why: string; readonly stored: Stored }
  | { readonly do: 'retire'; readonly why: string; readonly stored: Stored }
  | { readonly do: 'wait'; readonly why: string }

const none: Pair = { certificate: '', key: '' }

/** The next step; `keep` are the authorities to go on trusting beside the one about to be made. */
export function plan(input: PlanInput): RotationStep {
  const { stored, names, now } = input
  const serving = fitness(stored.serving, stored.bundle, names, now)
  const next = fitness(stored.next, stored.bundle, names, now)
  const settled = !stored.since || now.getTime() - stored.since.getTime() >= input.settleMs

  if (!serving.fit) {
    // A staged pair is trusted already: showing it now is quicker and safer than making a third authority.
    if (next.fit) return promote(stored, now, serving.why)
    return { do: 'issue', why: serving.why, keep: current(stored.bundle, now).slice(-2) }
  }
  if (next.fit) {
    if (!settled)
      return { do: 'wait', why: 'the next certificate is staged; clients are reloading its authority' }
    if (!input.trustedEverywhere) return { do: 'wait', why: 'not every client trusts the next authority yet' }
    return promote(stored, now, 'every client trusts the next authority')
  }
  if (joinBundle([serving.issuer]) !== joinBundle([stored.bundle])) {
    if (!settled) return { do: 'wait', why: 'servers are reloading the new certificate' }
    return {
      do: 'retire',
      why: 'the former authority is no longer in use',
      stored: { ...stored, next: none, bundle: joinBundle([serving.issuer]), since: now },
    }
  }
  const leftMs = serving.notAfter.getTime() - now.getTime()
  if (leftMs <= input.renewBeforeMs) return { do: 'stage', why: 'renewal is due', keep: [serving.issuer] }
  if (input.force) return { do: 'stage', why: 'rotation was asked for', keep: [serving.issuer] }
  return { do: 'wait', why: `the certificate is good until ${serving.notAfter.toISOString()}` }
}

function promote(stored: Stored, now: Date, why: string): RotationStep {
  return { do: 'promote', why, stored: { ...stored, serving: stored.next, next: none, since: now } }
}
