/**
 * Detects running clients that write their file from memory and would overwrite a change.
 *
 * On Linux, only processes with the same home folder matter, because other processes use a different file. If processes
 * cannot be listed, no client is detected as running.
 */
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { type ClientId, clientRow, type Host } from '../clients/index.ts'

/** Returns the first of `names` that is a running process, or undefined. */
export function runningOf(names: readonly string[], host: Host): string | undefined {
  const running = host.platform === 'linux' ? processesOfHome(host.home) : listProcesses(host.platform)
  return names.find((name) => running.has(name))
}

function processesOfHome(home: string): ReadonlySet<string> {
  const names = new Set<string>()
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const environment = readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0')
      if (environment.includes(`HOME=${home}`)) names.add(readFileSync(`/proc/${pid}/comm`, 'utf8').trim())
    } catch {
      // The process exited, or belongs to another user.
    }
  }
  return names
}

function listProcesses(platform: Host['platform']): ReadonlySet<string> {
  try {
    const [program, args]: readonly [string, string[]] =
      platform === 'win32' ? ['tasklist', ['/fo', 'csv', '/nh']] : ['ps', ['-x', '-o', 'comm=']]
    const text = execFileSync(program, args, { encoding: 'utf8', timeout: 5000 })
    return new Set(
      text.split(/\r?\n/).map((line) => basename(line.split('","')[0]?.replace(/^"/, '') ?? '').trim()),
    )
  } catch {
    return new Set()
  }
}

/**
 * Returns the reason why the client's file must not be changed now, or undefined. `command` is the command to repeat.
 */
export function whyNotChangeable(client: ClientId, host: Host, command: 'up' | 'down'): string | undefined {
  const { title, rewrittenBy = [] } = clientRow(client)
  return runningOf(rewrittenBy, host) === undefined
    ? undefined
    : `${title} is running and would overwrite the change: quit it and run gatehouse ${command} again, or use --while-running`
}
