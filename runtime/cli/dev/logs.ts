import { invalidConfig, nearest } from '../../../schemas/index.ts'
import { existsSync, lstatSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { exitCode } from '../../toolkit/terminal/output.ts'
import { outputWriter, withSuggestion } from '../../toolkit/terminal/plain-text.ts'
import { loggedNames, logFile } from '../../toolkit/targets/logs.ts'

const followEveryMs = 200

/** Prints the resource's output from the newest session that has output for the resource. Returns the exit code. */
export async function showLogs(
  name: string | undefined,
  options: { follow: boolean; stop: AbortSignal },
): Promise<number> {
  const file = logFileOf(name)
  const write = outputWriter(process.stdout)
  let offset = await copyFrom(file, 0, write)
  while (options.follow && !options.stop.aborted) {
    await sleep(followEveryMs, undefined, { signal: options.stop }).catch(() => undefined)
    if (!existsSync(file)) break
    // Starts from the beginning of a file that is shorter than the offset, because such a file has been rotated.
    offset = await copyFrom(file, lstatSync(file).size < offset ? 0 : offset, write)
  }
  return exitCode.ok
}

function logFileOf(name: string | undefined): string {
  const found = name === undefined ? undefined : logFile(name)
  if (found !== undefined) return found
  const names = loggedNames()
  if (names.length === 0)
    throw invalidConfig(
      `"gatehouse up" is not running for this user, and no "gatehouse dev" or "gatehouse run" session was found in ${tmpdir()}; start a session, or set TMPDIR to the value that the session uses`,
    )
  const available = `output is available for: ${names.join(', ')}`
  if (name === undefined) throw invalidConfig(`NAME is missing; ${available}`)
  throw invalidConfig(`no output from "${name}"; ${withSuggestion(nearest(name, names), available)}`)
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
