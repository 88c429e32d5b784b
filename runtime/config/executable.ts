/** Checks whether a program can be started, without starting it. */
import { accessSync, constants } from 'node:fs'
import { delimiter, isAbsolute, join } from 'node:path'

export interface ExecutablePlace {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly cwd: string
  readonly platform: string
}

/** True for the path of an executable file, or the name of an executable file in PATH. */
export function canStart(program: string, { env, cwd, platform }: ExecutablePlace): boolean {
  const isPath = isAbsolute(program) || /[/\\]/.test(program)
  const folders = isPath ? [isAbsolute(program) ? '' : cwd] : (env['PATH'] ?? '').split(delimiter)
  const endings = platform === 'win32' ? ['', '.exe', '.cmd', '.bat'] : ['']
  return folders.some((folder) => endings.some((ending) => isExecutable(join(folder, `${program}${ending}`))))
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}
