/**
 * Runs checks in hop order. Skips a check when one of its prerequisites failed, so that only the cause is reported as a
 * failure.
 */
import { codes } from './codes.ts'
import { type Finding, type CheckOutcome, type Result, skipped } from './finding.ts'
import type { Clean } from './text.ts'

/** Maximum number of lines in a fix, which has one or two lines for each cause. */
const maxFixLines = 50

export interface Check<Facts> {
  readonly id: string
  readonly hop: string
  /** Checks that must have returned ok or warning. */
  readonly needs: readonly string[]
  readonly object: (facts: Facts) => string
  readonly run: (facts: Facts) => Promise<CheckOutcome>
  /** Also runs after an interruption to clean up after earlier checks. */
  readonly always?: boolean
}

export interface WalkOptions<Facts> {
  readonly facts: Facts
  readonly clean: Clean
  /** Returns a fix for the provider, if available. */
  readonly providerFix?: (code: string) => { readonly text: string; readonly docs?: string } | undefined
  readonly onFinding?: ((finding: Finding) => void) | undefined
  /** Aborts the remaining checks. */
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
      // Entry and manifest names are also untrusted text.
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

/** Reports an interruption once, at the first check that did not run. */
function interrupted(findings: readonly Finding[]): CheckOutcome {
  const isReported = findings.some(({ code }) => code === 'doctor.interrupted')
  const observed = 'the check was interrupted'
  return isReported ? skipped(observed) : { result: 'unknown', code: 'doctor.interrupted', observed }
}

/** Reports an error in this program as unknown instead of as a failure of the target. */
async function outcomeOf<Facts>(check: Check<Facts>, facts: Facts): Promise<CheckOutcome> {
  try {
    return await check.run(facts)
  } catch (error) {
    const text = error instanceof Error ? `${error.name}: ${error.message}` : String(error)
    return { result: 'unknown', code: 'doctor.error', observed: text }
  }
}

function detailsOf<Facts>(outcome: CheckOutcome, { clean, providerFix }: WalkOptions<Facts>) {
  const { code, observed, items, fix, proof } = outcome
  if (code === undefined) return { observed: clean(observed) }
  const provider = providerFix?.(code)
  // Order: the fix for this response, then the provider's fix, then the general fix.
  const lines = (fix ?? codes[code].fix).split('\n').slice(0, maxFixLines)
  const general = lines.map((line) => clean(line, 1000)).join('\n')
  return {
    code,
    observed: clean(observed),
    ...(items !== undefined && { items: items.map((item) => clean(item)) }),
    expected: codes[code].expected,
    fix: {
      text:
        provider === undefined ? general : fix === undefined ? provider.text : `${general} ${provider.text}`,
      ...(provider?.docs !== undefined && { docs: provider.docs }),
    },
    ...(proof !== undefined && { proof: clean(proof, 1000) }),
  }
}
