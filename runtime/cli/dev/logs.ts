/**
 * `gatehouse logs`: the output of a resource that a running `gatehouse dev` stores.
 *
 * Sessions are found by their folders for temporary files. Only folders of this user count: others may make some of the
 * same name there.
 */
import { existsSync, lstatSync, readdirSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { refused } from '../clients/host.ts'
import { exitCode } from '../output.ts'

const followEveryMs = 200

/** Prints the output of the newest session that has such a resource. Returns the exit code. */
export async function showLogs(
  name: string,
  options: { follow: boolean; stop: AbortSignal },
): Promise<number> {
  const file = logFileOf(name)
  let offset = await copyFrom(file, 0)
  while (options.follow && !options.stop.aborted) {
    await sleep(followEveryMs, undefined, { signal: options.stop }).catch(() => undefined)
    if (!existsSync(file)) break
    // A new file has begun when this one is shorter than what was shown.
    offset = await copyFrom(file, lstatSync(file).size < offset ? 0 : offset)
  }
  return exitCode.ok
}

function logFileOf(name: string): string {
  const folders = sessionFolders()
  const found = folders.map((folder) => join(folder, `${name}.log`)).find((path) => existsSync(path))
  if (found !== undefined && !/[/\\]/.test(name)) return found
  const names = new Set(
    folders.flatMap((folder) => readdirSync(folder)).map((file) => file.replace(/\.log.*/, '')),
  )
  if (names.size > 0)
    throw refused(`no output of "${name}"; there is some of ${[...names].sort().join(', ')}`)
  throw refused(
    `no "gatehouse dev" of this user stores output below ${tmpdir()}; start one, or set TMPDIR as it has it`,
  )
}

/** Newest first. */
function sessionFolders(): string[] {
  const own = process.getuid?.()
  return readdirSync(tmpdir())
    .filter((entry) => entry.startsWith('gatehouse-dev-'))
    .map((entry) => join(tmpdir(), entry))
    .flatMap((folder) => {
      const stat = lstatSync(folder, { throwIfNoEntry: false })
      const logs = join(folder, 'logs')
      const isOurs = stat?.isDirectory() === true && (own === undefined || stat.uid === own)
      return stat && isOurs && existsSync(logs) ? [{ logs, at: stat.birthtimeMs }] : []
    })
    .sort((a, b) => b.at - a.at)
    .map(({ logs }) => logs)
}

/** Copies a file from an offset to standard output; resolves with the offset of its end. */
async function copyFrom(path: string, offset: number): Promise<number> {
  const file = await open(path, 'r')
  let end = offset
  try {
    for await (const chunk of file.createReadStream({ start: offset, autoClose: false })) {
      process.stdout.write(chunk as Buffer)
      end += (chunk as Buffer).length
    }
  } finally {
    await file.close()
  }
  return end
}
