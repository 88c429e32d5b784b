/**
 * Ends process groups when this process ends, even when it is killed with SIGKILL. A small shell reads the ids of
 * running groups from a pipe, and ends the groups when the pipe closes.
 *
 * The shell leads its own session, so terminal signals do not reach it. Without a shell, and on Windows, groups end
 * with this process only if it ends normally.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { Socket } from 'node:net'

/** Lines are `+ PID` and `- PID`. Sends SIGTERM, and SIGKILL after two seconds. */
const script = `
groups=
while read -r change group; do
  rest=
  for one in $groups; do [ "$one" = "$group" ] || rest="$rest $one"; done
  groups=$rest
  [ "$change" = + ] && groups="$groups $group"
done
[ -n "$groups" ] || exit 0
for one in $groups; do kill -s TERM -- "-$one" 2>/dev/null; done
sleep 2
for one in $groups; do kill -s KILL -- "-$one" 2>/dev/null; done
exit 0
`

export class Watchdog {
  readonly #groups = new Set<number>()
  #shell: ChildProcess | undefined

  constructor() {
    process.on('exit', () => this.#shell?.kill('SIGKILL'))
  }

  started(pid: number): void {
    this.#groups.add(pid)
    if (this.#shell) this.#tell(`+ ${pid}\n`)
    else this.#start()
  }

  ended(pid: number): void {
    this.#groups.delete(pid)
    this.#tell(`- ${pid}\n`)
    if (this.#groups.size > 0) return
    // No groups are left; the next group starts another shell.
    this.#shell?.stdin?.end()
    this.#shell = undefined
  }

  /** If the shell is killed externally, it is replaced when the next group starts. */
  #start(): void {
    if (process.platform === 'win32') return
    const shell = spawn('/bin/sh', ['-c', script], { detached: true, stdio: ['pipe', 'ignore', 'ignore'] })
    const over = (): void => {
      if (this.#shell === shell) this.#shell = undefined
    }
    shell.on('error', over).on('exit', over)
    shell.stdin.on('error', over)
    // The shell must not keep this process running.
    shell.unref()
    if (shell.stdin instanceof Socket) shell.stdin.unref()
    this.#shell = shell
    for (const pid of this.#groups) this.#tell(`+ ${pid}\n`)
  }

  #tell(line: string): void {
    const stdin = this.#shell?.stdin
    if (stdin?.writable === true) stdin.write(line)
  }
}
