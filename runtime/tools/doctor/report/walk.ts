/**
 * Runs checks one after the other, in the order of the hops. A check whose needs did not succeed is skipped, so that the
 * first failure is the cause and what follows from it is not reported as a failure of its own.
 */
import { codes } from './codes.ts'
import { type Finding, type CheckOutcome, type Result, skipped } from './finding.ts'
import type { Clean } from './text.ts'

export interface Check<Facts> {
  readonly id: string
  readonly hop: string
  /** Checks that must have ended with ok or a warning. */
  readonly needs: readonly string[]
  readonly object: (facts: Facts) => string
  readonly run: (facts: Facts) => Promise<CheckOutcome>
  /** Also after an interruption: it gives back what the checks before it took. */
  readonly always?: boolean
}

export interface WalkOptions<Facts> {
  readonly facts: Facts
  readonly clean: Clean
  /** A fix that knows the provider, if there is one. */
  readonly providerFix?: (code: string) => { readonly text: string; readonly docs?: string } | undefined
  readonly onFinding?: ((finding: Finding) => void) | undefined
  /** Aborted: what is left is not checked. */
  readonly signal?: AbortSignal | undefined
}

export async function walk<Facts>(
  checks: readonly Check<Facts>[],
  options: WalkOptions<Facts>,
): Promise<readonly Finding[]> {
  const { facts, clean, onFinding, signal } = options
  const results = new Map<string, Result>()
  const findings: Finding[] = []
  for (const check of checks) {
    const started = performance.now()
    const missing = check.needs.find((id) => !passed(results.get(id)))
    const isOver = signal?.aborted === true && check.always !== true
    const outcome = isOver
      ? interrupted(findings)
      : missing === undefined
        ? await outcomeOf(check, facts)
        : undefined
    const result = outcome?.result ?? 'skipped'
    results.set(check.id, result)
    const base = {
      // Names of entries and manifests are somebody's text as well.
      id: clean(check.id),
      hop: check.hop,
      object: clean(check.object(facts)),
      result,
      ms: Math.round(performance.now() - started),
    }
    const finding: Finding =
      outcome === undefined
        ? { ...base, observed: `needs ${missing}`, ...(missing !== undefined && { needs: missing }) }
        : { ...base, ...detailsOf(outcome, options) }
    findings.push(finding)
    onFinding?.(finding)
  }
  return findings
}

function passed(result: Result | undefined): boolean {
  return result === 'ok' || result === 'warning'
}

/** Told once: the first check that was not carried out. */
function interrupted(findings: readonly Finding[]): CheckOutcome {
  const isTold = findings.some(({ code }) => code === 'doctor.interrupted')
  const observed = 'the examination was interrupted'
  return isTold ? skipped(observed) : { result: 'unknown', code: 'doctor.interrupted', observed }
}

/** An error of this program is no statement about the target. */
async function outcomeOf<Facts>(check: Check<Facts>, facts: Facts): Promise<CheckOutcome> {
  try {
    return await check.run(facts)
  } catch (error) {
    const text = error instanceof Error ? `${error.name}: ${error.message}` : String(error)
    return { result: 'unknown', code: 'doctor.error', observed: text }
  }
}

function detailsOf<Facts>(outcome: CheckOutcome, { clean, providerFix }: WalkOptions<Facts>) {
  const { code, observed, fix, proof } = outcome
  if (code === undefined) return { observed: clean(observed) }
  const provider = providerFix?.(code)
  // What depends on this very response comes first, then what the provider needs, then what holds for everybody.
  const general = clean(fix ?? codes[code].fix, 1000)
  return {
    code,
    observed: clean(observed),
    expected: codes[code].expected,
    fix: {
      text:
        provider === undefined ? general : fix === undefined ? provider.text : `${general} ${provider.text}`,
      ...(provider?.docs !== undefined && { docs: provider.docs }),
    },
    ...(proof !== undefined && { proof: clean(proof, 1000) }),
  }
}
