import { invalidConfig } from '../../../schemas/index.ts'
import { existsSync, lstatSync, readdirSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { thisHost, upFolder } from '../../toolkit/client-files/host.ts'
import { exitCode } from '../../toolkit/terminal/output.ts'
import { outputWriter } from '../../toolkit/terminal/plain-text.ts'
import { sessionFolders } from '../../toolkit/targets/running.ts'

const followEveryMs = 200

/** Prints the resource's output in the newest session that has it. Returns the exit code. */
export async function showLogs(
  name: string,
  options: { follow: boolean; stop: AbortSignal },
): Promise<number> {
  const file = logFileOf(name)
  const write = outputWriter(process.stdout)
  let offset = await copyFrom(file, 0, write)
  while (options.follow && !options.stop.aborted) {
    await sleep(followEveryMs, undefined, { signal: options.stop }).catch(() => undefined)
    if (!existsSync(file)) break
    // A file shorter than the offset has been rotated: start from its beginning.
    offset = await copyFrom(file, lstatSync(file).size < offset ? 0 : offset, write)
  }
  return exitCode.ok
}

function logFileOf(name: string): string {
  const folders = logFolders()
  const found = folders.map((folder) => join(folder, `${name}.log`)).find((path) => existsSync(path))
  if (found !== undefined && !/[/\\]/.test(name)) return found
  const names = new Set(
    folders.flatMap((folder) => readdirSync(folder)).map((file) => file.replace(/\.log.*/, '')),
  )
  if (names.size > 0)
    throw invalidConfig(`no output from "${name}"; output is available for: ${[...names].sort().join(', ')}`)
  throw invalidConfig(
    `this user runs neither "gatehouse up" nor a "gatehouse dev" session in ${tmpdir()}; start one, or set TMPDIR to the value that the session uses`,
  )
}

/** Returns the log folder of `gatehouse up`, then every `gatehouse dev` session's log folder, newest first. */
function logFolders(): string[] {
  const sessions = sessionFolders(['gatehouse-dev-']).map(({ folder }) => folder)
  return [upFolder(thisHost()), ...sessions]
    .map((folder) => join(folder, 'logs'))
    .filter((logs) => existsSync(logs))
}

/** Copies a file to standard output, starting at an offset. Returns the offset of the file's end. */
async function copyFrom(path: string, offset: number, write: (chunk: Buffer) => void): Promise<number> {
  const file = await open(path, 'r')
  let end = offset
  try {
    for await (const chunk of file.createReadStream({ start: offset, autoClose: false })) {
      write(chunk as Buffer)
      end += (chunk as Buffer).length
    }
  } finally {
    await file.close()
  }
  return end
}
