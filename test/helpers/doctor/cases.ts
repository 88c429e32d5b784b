/** Staged failures: each case breaks one part and contains the doctor's expected finding. */
import type { Test } from 'tap'
import { type Bend, type Place, type Stage, startStage } from './staged.ts'
import { type ExamineOptions, examineRemote } from '../../../runtime/tools/doctor/remote/examine.ts'
import type { Finding } from '../../../runtime/tools/doctor/report/finding.ts'

export interface Case {
  readonly name: string
  readonly bend: Bend
  readonly code: string
  readonly hop: string
  readonly fix: RegExp
  /** Expected observation. */
  readonly observed?: RegExp
  readonly result?: 'failed' | 'warning'
  /** Replaces the path of the URL. */
  readonly path?: string
  readonly options?: (stage: Stage) => Partial<ExamineOptions>
}

export const redirectUri = 'http://localhost:8666/callback'
export const client = {
  client_id: 'known-client',
  token_endpoint_auth_method: 'none',
  redirect_uris: [redirectUri],
  application_type: 'native',
}
export const withToken = ({ token }: Stage) => ({ token })
export const isMcp = (req: { url?: string | undefined }) => req.url === '/mcp'
export const isMetadata = (req: { url?: string | undefined }) => (req.url ?? '').startsWith('/.well-known/o')

export function withMetadata(
  change: (document: Record<string, unknown>, place: Place) => Record<string, unknown>,
): Bend {
  return { metadata: change }
}

export function without(name: string): Bend {
  return withMetadata((document) =>
    Object.fromEntries(Object.entries(document).filter(([key]) => key !== name)),
  )
}

/** Runs each case in its own test. */
export async function runCases(t: Test, group: string, cases: readonly Case[]): Promise<void> {
  await t.test(group, async (t) => {
    for (const { name, bend, code, hop, fix, observed, result = 'failed', path, options } of cases) {
      await t.test(name, async (t) => {
        const stage = await startStage(bend)
        t.teardown(() => stage.close())
        const target = new URL(path ?? '/mcp', stage.url)
        const { findings } = await examineRemote({ target, ...options?.(stage) })
        const found = findings.find((finding) => finding.result === result)
        t.match(found, { code, hop, fix: { text: fix }, ...(observed && { observed }) }, shown(findings))
        t.ok((found?.expected?.length ?? 0) > 5, 'says what was expected')
        if (result === 'warning') t.equal(firstFailure(findings), undefined, 'nothing fails')
      })
    }
  })
}

export function firstFailure(findings: readonly Finding[]): string | undefined {
  return findings.find(({ result }) => result === 'failed' || result === 'unknown')?.code
}

export function shown(findings: readonly Finding[]): string {
  return findings
    .filter(({ result }) => result !== 'ok' && result !== 'skipped')
    .map(({ code, observed }) => `${code}: ${observed}`)
    .join(' | ')
}
