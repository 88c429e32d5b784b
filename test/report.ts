/** Reads the TAP output of `group.ts`: results of files, failed assertions, and skipped tests. */

export interface FileResult {
  readonly file: string
  readonly passed: number
  readonly failed: number
  readonly skipped: number
  readonly seconds: number
  /** CPU seconds of the process and of its ended children. */
  readonly cpuSeconds: number
}

export interface GroupReport {
  /** Results of the completed files. */
  readonly results: readonly FileResult[]
  /** Each failed assertion with its diagnostics and the names of the tests around it. */
  readonly failures: readonly string[]
  /** File, name and reason of each skipped test. */
  readonly skipped: readonly string[]
}

const resultMark = 'file result: '

export function formatResult(result: FileResult): string {
  return `${resultMark}${JSON.stringify(result)}`
}

export function readReport(tap: string): GroupReport {
  const results: FileResult[] = []
  const failures: string[] = []
  const skipped: string[] = []
  /** Names of the tests around a line, outermost first. */
  let names: string[] = []
  const lines = tap.split('\n')
  for (const [at, line] of lines.entries()) {
    const [, indent = '', text = ''] = /^( *)(.*)$/.exec(line) ?? []
    const around = names.slice(0, indent.length / 4)
    const name = /^# Subtest: (.*)$/.exec(text)?.[1]
    const failed = /^not ok \d+ - (.*?)(?: # time=\S+)?$/.exec(text)?.[1]
    const [, skippedName, reason] = /^ok \d+ - (.*) # SKIP ?(.*)$/.exec(text) ?? []
    if (name !== undefined) names = [...around, name]
    if (failed !== undefined) {
      const details = isSummary(lines[at - 1]) ? [] : diagnosticsAt(lines, at + 1, indent)
      failures.push([[...around, failed].join(' > '), ...details].join('\n'))
    }
    if (skippedName !== undefined)
      skipped.push(`${[...around, skippedName].join(' > ')}: ${reason || 'no reason given'}`)
    if (text.startsWith(`# ${resultMark}`)) results.push(JSON.parse(text.slice(resultMark.length + 2)))
  }
  return { results, failures, skipped }
}

/** True when the previous line is the plan of a subtest, so this line repeats the result of its assertions. */
function isSummary(previous: string | undefined): boolean {
  return /^ *1\.\.\d+$/.test(previous ?? '')
}

/** The YAML block of an assertion without its indentation. */
function diagnosticsAt(lines: readonly string[], start: number, indent: string): string[] {
  if (lines[start] !== `${indent}  ---`) return []
  const end = lines.indexOf(`${indent}  ...`, start)
  return lines.slice(start + 1, end).map((line) => `  ${line.slice(indent.length)}`)
}
