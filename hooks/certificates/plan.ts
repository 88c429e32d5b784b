/**
 * Decides the next step in the serving certificate's lifecycle. The decision is a pure function of the stored state and
 * the time.
 *
 * The order of the steps in a rotation matters. Every client trusts the new authority before any server presents the
 * new leaf, and trusts the old authority until no server presents the old leaf.
 *
 *   steady --(renewal due)--> stage: next pair stored, old and new authority trusted
 *   staged --(settled, and trusted everywhere)--> promote: the next pair is served, both authorities still trusted
 *   promoted --(settled)--> retire: only the new authority is trusted
 *   unfit (first run, expired, other names) --> issue: trust the new authority at once, then serve its leaf
 *
 * All state is in one Secret, so a run may stop at any point, and the next run continues from the stored state.
 */
import { currentCertificates, checkFitness, joinBundle, type Pair } from './inspect.ts'

/** Contents of the Secret. Absent keys are empty strings. */
export interface Stored {
  /** The pair that servers present: `tls.crt`, `tls.key`. */
  readonly serving: Pair
  /** The pair that servers will present next: `next.crt`, `next.key`. */
  readonly next: Pair
  /** The authorities that clients should trust: `ca.crt`. */
  readonly bundle: string
  /** Time of the last step. Undefined if the time is unknown; the next step then runs without a wait. */
  readonly since: Date | undefined
}

export interface PlanInput {
  readonly stored: Stored
  /** True when every client configuration contains exactly `stored.bundle`. */
  readonly trustedEverywhere: boolean
  readonly names: readonly string[]
  readonly now: Date
  readonly renewBeforeMs: number
  /** Time that clients and servers need to reload a change. */
  readonly settleMs: number
  /** True to rotate even when renewal is not due. The caller clears the flag after a rotation has started. */
  readonly force: boolean
}

export type RotationStep =
  | { readonly do: 'issue'; readonly why: string; readonly keep: readonly string[] }
  | { readonly do: 'stage'; readonly why: string; readonly keep: readonly string[] }
  | { readonly do: 'promote'; readonly why: string; readonly stored: Stored }
  | { readonly do: 'retire'; readonly why: string; readonly stored: Stored }
  | { readonly do: 'wait'; readonly why: string }

const none: Pair = { certificate: '', key: '' }

/** Returns the next step. `keep` lists the authorities that clients must trust in addition to the new authority. */
export function nextStep(input: PlanInput): RotationStep {
  const { stored, names, now } = input
  const serving = checkFitness(stored.serving, stored.bundle, names, now)
  const next = checkFitness(stored.next, stored.bundle, names, now)
  const settled = !stored.since || now.getTime() - stored.since.getTime() >= input.settleMs

  if (!serving.fit) {
    // Clients already trust a staged pair, so serving it is faster and safer than creating a third authority.
    if (next.fit) return promote(stored, now, serving.why)
    return { do: 'issue', why: serving.why, keep: currentCertificates(stored.bundle, now).slice(-2) }
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
      why: 'the previous authority is no longer in use',
      stored: { ...stored, next: none, bundle: joinBundle([serving.issuer]), since: now },
    }
  }
  const leftMs = serving.notAfter.getTime() - now.getTime()
  if (leftMs <= input.renewBeforeMs) return { do: 'stage', why: 'renewal is due', keep: [serving.issuer] }
  if (input.force) return { do: 'stage', why: 'rotation was requested', keep: [serving.issuer] }
  return { do: 'wait', why: `the certificate is valid until ${serving.notAfter.toISOString()}` }
}

function promote(stored: Stored, now: Date, why: string): RotationStep {
  return { do: 'promote', why, stored: { ...stored, serving: stored.next, next: none, since: now } }
}
