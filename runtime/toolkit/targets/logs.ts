/** Finds the output files of the servers that `gatehouse dev` and `gatehouse run` run on this machine. */
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { sessionFolders, sessionPrefixes } from './running.ts'

/** Returns the names of all resources with output. */
export function loggedNames(): readonly string[] {
  const files = logFolders().flatMap((folder) => readdirSync(folder))
  return [...new Set(files.map((file) => file.replace(/\.log.*/, '')))].sort()
}

/** Returns the output file in the newest session that has one for this resource. */
export function logFile(name: string): string | undefined {
  if (/[/\\]/.test(name)) return undefined
  return logFolders()
    .map((folder) => join(folder, `${name}.log`))
    .find((path) => existsSync(path))
}

/** Returns every session's log folder, newest first. */
function logFolders(): readonly string[] {
  return sessionFolders(sessionPrefixes)
    .map(({ folder }) => join(folder, 'logs'))
    .filter((logs) => existsSync(logs))
}
