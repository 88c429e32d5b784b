/**
 * Creates the report for `gatehouse doctor`, either as text, with rows for each hop and fixes for failures, or as JSON.
 */
import type { painter } from '../../../toolkit/terminal/output.ts'
import { version } from '../../../toolkit/terminal/self.ts'
import type { Finding, Result } from '../report/finding.ts'

/** The result of the checks on one target. */
export interface Examined {
  /** URL, file or object, without credentials. */
  readonly target: string
  /** The identity provider, if it was recognized. */
  readonly provider?: { readonly id: string; readonly title: string; readonly quirks: readonly string[] }
  readonly findings: readonly Finding[]
}

export type FailOn = 'failed' | 'warning'

/** True when a check failed. An unknown result is treated as a failure. */
export function isFailed(examined: readonly Examined[], failOn: FailOn): boolean {
  const bad: readonly Result[] =
    failOn === 'warning' ? ['failed', 'unknown', 'warning'] : ['failed', 'unknown']
  return examined.some(({ findings }) => findings.some(({ result }) => bad.includes(result)))
}

/** Returns the first finding that stops a client. */
function firstFailure(findings: readonly Finding[]): Finding | undefined {
  return findings.find(({ result }) => result === 'failed' || result === 'unknown')
}

type Counts = Readonly<Record<Result, number>>

function countsOf(findings: readonly Finding[]): Counts {
  const count = (result: Result): number => findings.filter((finding) => finding.result === result).length
  return {
    ok: count('ok'),
    warning: count('warning'),
    failed: count('failed'),
    unknown: count('unknown'),
    skipped: count('skipped'),
  }
}

/** Returns the report for `-o json`. */
export function reportObject(examined: readonly Examined[], failOn: FailOn): object {
  const broken = examined.find(({ findings }) => firstFailure(findings) !== undefined)
  const first = broken === undefined ? undefined : firstFailure(broken.findings)
  return {
    schema: 'gatehouse.dev/doctor/v1',
    version,
    vantage: 'this machine',
    result: isFailed(examined, failOn) ? 'failed' : 'ok',
    firstFailure:
      broken === undefined || first === undefined
        ? null
        : { target: broken.target, hop: first.hop, id: first.id, code: first.code },
    targets: examined.map(({ target, provider, findings }) => ({
      target,
      provider: provider ?? null,
      counts: countsOf(findings),
      checks: findings,
    })),
  }
}

const styles = { ok: 'green', warning: 'yellow', failed: 'red', unknown: 'red', skipped: 'dim' } as const

export function reportLines(
  { target, provider, findings }: Examined,
  paint: ReturnType<typeof painter>,
): readonly string[] {
  const lines = [paint('bold', target), ...hopLines(findings, paint)]
  if (provider !== undefined) lines.push('', `Identity provider: ${provider.title}`)
  const first = firstFailure(findings)
  if (first !== undefined)
    lines.push('', ...detailLines(`First failure: ${first.code ?? first.id}`, first, paint))
  const remaining = findings.filter((finding) => finding !== first && finding.fix !== undefined)
  for (const finding of remaining) {
    const title = finding.result === 'warning' ? 'Warning' : 'Also failed'
    lines.push('', ...detailLines(`${title}: ${finding.code ?? finding.id}`, finding, paint))
  }
  const counts = Object.entries(countsOf(findings)).filter(([, count]) => count > 0)
  return [...lines, '', counts.map(([result, count]) => `${count} ${result}`).join(', ')]
}

/**
 * Findings with the result `ok` or `skipped` share one line per hop. Findings with any other result have separate
 * lines.
 */
function hopLines(findings: readonly Finding[], paint: ReturnType<typeof painter>): readonly string[] {
  const hops = [...new Set(findings.map(({ hop }) => hop))]
  const width = Math.max(...hops.map((hop) => hop.length))
  return hops.flatMap((hop) => {
    const own = findings.filter((finding) => finding.hop === hop)
    const line = (result: Result, text: string): string =>
      `  ${paint(styles[result], result.padEnd(8))} ${hop.padEnd(width)}  ${text}`
    const folded = (result: Result): string[] => {
      const same = own.filter((finding) => finding.result === result)
      return same.length === 0 ? [] : [line(result, paint('dim', summarize(same)))]
    }
    const separate = own
      .filter(({ result }) => result !== 'ok' && result !== 'skipped')
      .map((finding) => line(finding.result, `${finding.code ?? finding.id}: ${finding.observed}`))
    return [...folded('ok'), ...separate, ...folded('skipped')]
  })
}

/** Returns the observation for a single check, or the names of several checks. */
function summarize(findings: readonly Finding[]): string {
  const [first] = findings
  if (findings.length === 1 && first !== undefined) return `${first.id}: ${first.observed}`
  return findings.map(({ id }) => id).join(', ')
}

function detailLines(title: string, finding: Finding, paint: ReturnType<typeof painter>): readonly string[] {
  const { object, observed, expected, fix, proof, result } = finding
  const row = (name: string, text: string | undefined): string[] =>
    text === undefined
      ? []
      : [`  ${paint('dim', name.padEnd(8))}  ${text.replaceAll('\n', `\n${' '.repeat(12)}`)}`]
  return [
    paint(styles[result], title),
    ...row('at', object),
    ...row('expected', expected),
    ...row('observed', observed),
    ...row('fix', fix?.text),
    ...row('see', fix?.docs),
    ...row('try', proof),
  ]
}
