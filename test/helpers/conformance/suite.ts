/** Runs the official MCP conformance suite as a process. */
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'

const suite = join(
  import.meta.dirname,
  '../../../node_modules/@modelcontextprotocol/conformance/dist/index.js',
)

export interface ConformanceResult {
  /** Exit code: 0 if every required scenario passed. */
  readonly code: number | null
  readonly output: string
  /** Output lines that name a failed scenario, required or not. */
  readonly failures: readonly string[]
}

/** Returns a command line that runs a file with this Node.js. The suite passes it to a shell unchanged. */
export function nodeCommand(file: string): string {
  return [process.execPath, file].map((path) => path.replace(/[^\w@%+=:,./-]/g, '\\$&')).join(' ')
}

/** Runs the suite with arguments such as `['server', '--url', url, '--requirements', '2025-11-25']`. */
export async function runConformance(args: readonly string[], env = {}): Promise<ConformanceResult> {
  const child = spawn(process.execPath, [suite, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...env },
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (chunk: string) => (output += chunk))
  }
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve))
  const plain = stripVTControlCharacters(output)
  const failures = plain.split('\n').filter((line) => /^\s*✗/.test(line))
  return { code, output: plain, failures }
}
