/**
 * Whether a client runs that writes its file from memory: what is written meanwhile would be lost.
 *
 * On Linux a process counts only when its home is ours, for another home has another file. Where processes cannot be
 * listed, none counts.
 */
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { basename } from 'node:path'
import type { Host } from '../clients/index.ts'

/** The name of a process among `names` that runs now; undefined when none does. */
export function runningOf(names: readonly string[], host: Host): string | undefined {
  const running = host.platform === 'linux' ? processesOfHome(host.home) : listed(host.platform)
  return names.find((name) => running.has(name))
}

function processesOfHome(home: string): ReadonlySet<string> {
  const names = new Set<string>()
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const environment = readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0')
      if (environment.includes(`HOME=${home}`)) names.add(readFileSync(`/proc/${pid}/comm`, 'utf8').trim())
    } catch {
      // It ended meanwhile, or belongs to somebody else.
    }
  }
  return names
}

function listed(platform: Host['platform']): ReadonlySet<string> {
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
