/** Runs the official MCP conformance suite as a process and reads its results. */
import { spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'

/** Path of the suite's program. */
export const suiteProgram = join(
  import.meta.dirname,
  '../../../node_modules/@modelcontextprotocol/conformance/dist/index.js',
)

export interface ScenarioResult {
  /**
   * Sorted ids of the checks that failed. ` (warning)` follows the id of a check that only warns. `no-check-ran` if no
   * check succeeded, failed or warned.
   */
  readonly failed: readonly string[]
  /** Output of the client that the suite started. Empty when the suite tests a server. */
  readonly stdout: string
}

export interface ConformanceResult {
  /** Exit code: 0 if every required scenario passed. */
  readonly code: number | null
  readonly output: string
  /** Results by scenario, including those that are not scored. */
  readonly scenarios: ReadonlyMap<string, ScenarioResult>
}

/** Returns a command line that runs a file with this Node.js. The suite passes it to a shell unchanged. */
export function nodeCommand(file: string): string {
  return [process.execPath, file].map((path) => path.replace(/[^\w@%+=:,./-]/g, '\\$&')).join(' ')
}

/** Runs the suite with arguments such as `['server', '--url', url, '--requirements', '2025-11-25']`. */
export async function runConformance(args: readonly string[], env = {}): Promise<ConformanceResult> {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-conformance-'))
  try {
    const child = spawn(process.execPath, [suiteProgram, ...args, '-o', folder], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, ...env },
    })
    let output = ''
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (chunk: string) => (output += chunk))
    }
    const code = await new Promise<number | null>((resolve) => child.once('close', resolve))
    return { code, output: stripVTControlCharacters(output), scenarios: readResults(folder) }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Reads the results that the suite wrote to a folder. */
export function readResults(folder: string): ReadonlyMap<string, ScenarioResult> {
  const scenarios = new Map<string, ScenarioResult>()
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  for (const path of files.toSorted()) {
    const scenario = /^(?:server-|authorization-server-)?(.+)-\d{4}-\d\d-\d\dT[\d-]+Z\/checks\.json$/.exec(
      path,
    )?.[1]
    if (scenario === undefined) continue
    const checks: { id: string; status: string }[] = JSON.parse(readFileSync(join(folder, path), 'utf8'))
    const ids = new Set(checks.filter(({ status }) => status === 'FAILURE').map(({ id }) => id))
    for (const { id, status } of checks) if (status === 'WARNING') ids.add(`${id} (warning)`)
    if (!checks.some(({ status }) => status === 'SUCCESS') && ids.size === 0) ids.add('no-check-ran')
    const outputFile = path.replace('checks.json', 'stdout.txt')
    scenarios.set(scenario, {
      failed: [...ids].toSorted(),
      stdout: files.includes(outputFile) ? readFileSync(join(folder, outputFile), 'utf8') : '',
    })
  }
  return scenarios
}
