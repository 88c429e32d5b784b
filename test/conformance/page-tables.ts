/** The tables of the conformance page that show the runs of the official suite. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import type { SuiteRun } from '../helpers/conformance/record.ts'

type Mode = 'server' | 'client'

const sets = join(import.meta.dirname, '../../node_modules/@modelcontextprotocol/conformance/requirements')

/** Returns the required scenarios of a revision, as the suite defines them. */
export function requiredScenarios(revision: string, mode: Mode): readonly string[] {
  const set: Record<Mode, string[]> = parse(readFileSync(join(sets, `${revision}.yaml`), 'utf8'))
  return set[mode]
}

/** The scenarios of a run that count, or none if the run has no required set. */
function requiredOf({ mode, revision }: SuiteRun): readonly string[] {
  return mode === 'authorization' || revision === undefined ? [] : requiredScenarios(revision, mode)
}

/** True if no check failed. The suite does not count warnings as failures. */
function passes(run: SuiteRun, scenario: string): boolean {
  return run.scenarios[scenario]?.every((id) => id.endsWith(' (warning)')) ?? false
}

export function summaryTable(runs: readonly SuiteRun[]): string {
  const roles = { server: 'server', client: 'client', authorization: 'authorization server' }
  const rows = (['server', 'client', 'authorization'] as const).flatMap((mode) =>
    runs
      .filter((run) => run.mode === mode)
      .map((run) => {
        const ran = Object.keys(run.scenarios)
        const required = requiredOf(run)
        const scored = ran.filter((name) => required.includes(name))
        const rest = ran.filter((name) => !required.includes(name))
        return `| ${run.title} | ${roles[mode]} | ${run.revision ?? '–'} | ${share(run, scored)} | ${share(run, rest)} |`
      }),
  )
  return `| Tested | As | Revision | Required | Not scored |\n|---|---|---|---|---|\n${rows.join('\n')}`
}

function share(run: SuiteRun, names: readonly string[]): string {
  if (names.length === 0) return '–'
  return `${names.filter((name) => passes(run, name)).length} of ${names.length}`
}

/** One table per revision. Rows are scenarios, and columns are runs. */
export function serverTables(runs: readonly SuiteRun[]): string {
  return tables(runs.filter(({ mode }) => mode === 'server'))
}

export function clientTables(runs: readonly SuiteRun[]): string {
  return tables(runs.filter(({ mode }) => mode === 'client'))
}

function tables(runs: readonly SuiteRun[]): string {
  const revisions = [...new Set(runs.map(({ revision }) => revision))]
  return revisions.map((revision) => table(revision, runs)).join('\n\n')
}

function table(revision: string | undefined, all: readonly SuiteRun[]): string {
  const runs = all.filter((run) => run.revision === revision)
  const required = requiredOf({ ...runs[0], revision } as SuiteRun)
  const names = new Set([...required, ...runs.flatMap(({ scenarios }) => Object.keys(scenarios))])
  const rows = [...names].map((name) => {
    const results = runs.map((run) => {
      if (run.scenarios[name] === undefined) return '–'
      if (passes(run, name)) return run.scenarios[name]?.length === 0 ? '✓' : '✓!'
      return required.includes(name) ? '✗' : '(✗)'
    })
    const note = required.includes(name) || revision === undefined ? '' : ' (not scored)'
    return `| \`${name}\`${note} | ${results.join(' | ')} |`
  })
  const head = revision ?? 'Without a revision'
  return `| ${head} | ${runs.map(({ title }) => title).join(' | ')} |
|---|${'---|'.repeat(runs.length)}
${rows.join('\n')}`
}
