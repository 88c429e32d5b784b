/**
 * The servers that `gatehouse up` left in the clients' files, each with the reason. The session writes this list to a
 * file in its temporary folder, so that other commands can report the reason.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isFields, listOf } from '../../../schemas/index.ts'
import { isRunning, sessionFolders } from './sessions.ts'

export interface SkippedTarget {
  readonly name: string
  readonly why: string
  /** The next step. */
  readonly fix: string
}

const fileName = 'skipped.json'

/** Replaces the file of one session. */
export function writeSkipped(folder: string, servers: readonly SkippedTarget[]): void {
  const text = JSON.stringify({ pid: process.pid, servers })
  writeFileSync(join(folder, fileName), text, { mode: 0o600 })
}

/** Returns undefined when no running session skipped a server with this name. */
export function skippedServer(name: string): SkippedTarget | undefined {
  return sessionFolders(['gatehouse-up-'])
    .flatMap(({ folder }) => skippedIn(folder))
    .find((server) => server.name === name)
}

function skippedIn(folder: string): readonly SkippedTarget[] {
  try {
    const content: unknown = JSON.parse(readFileSync(join(folder, fileName), 'utf8'))
    if (!isFields(content) || !isRunning(content['pid'])) return []
    return listOf(content['servers']).flatMap((server) => (isSkipped(server) ? [server] : []))
  } catch {
    return []
  }
}

function isSkipped(server: unknown): server is SkippedTarget {
  return isFields(server) && ['name', 'why', 'fix'].every((field) => typeof server[field] === 'string')
}
