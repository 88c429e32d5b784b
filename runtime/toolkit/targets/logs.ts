/** Finds the output files of the servers that `gatehouse up`, `run` and `dev` run on this machine. */
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { thisHost, upFolder } from '../client-files/host.ts'
import { sessionFolders, sessionPrefixes } from './sessions.ts'

/** Returns the names of all resources that have an output file. */
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

/** Returns the log folder of `gatehouse up`, then every other session's log folder, newest first. */
function logFolders(): readonly string[] {
  const sessions = sessionFolders(sessionPrefixes).map(({ folder }) => folder)
  return [upFolder(thisHost()), ...sessions]
    .map((folder) => join(folder, 'logs'))
    .filter((logs) => existsSync(logs))
}
