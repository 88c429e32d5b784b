/** Runs `gatehouse` on a terminal, with `script` of util-linux: reads its output and types input. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { program } from './gatehouse.ts'

/** Reason that no terminal is available, for `{ skip }`; otherwise false. */
export const missingTerminal: string | false =
  spawnSync('script', ['--version'], { stdio: 'ignore' }).status === 0
    ? false
    : 'script of util-linux is not installed'

export interface Terminal {
  readonly child: ChildProcess
  /** All output on the screen. */
  readonly output: () => string
  /** Resolves with the next match after the previous one. */
  readonly waitFor: (pattern: RegExp) => Promise<void>
  readonly type: (text: string) => void
  /** Resolves with the exit code. */
  readonly ended: () => Promise<number | null>
}

export function startOnTerminal(args: readonly string[], env: NodeJS.ProcessEnv = process.env): Terminal {
  const line = [process.execPath, program, ...args].map(quoted).join(' ')
  const child = spawn('script', ['-q', '-e', '-c', line, '/dev/null'], {
    stdio: 'pipe',
    env: { ...env, TERM: 'xterm', SHELL: '/bin/sh' },
  })
  let text = ''
  let from = 0
  let told = (): void => undefined
  const exited = once(child, 'exit')
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk
    told()
  })
  return {
    child,
    output: () => text,
    async waitFor(pattern) {
      for (;;) {
        const match = pattern.exec(text.slice(from))
        if (match) {
          from += match.index + match[0].length
          return
        }
        const more = new Promise<boolean>((resolve) => (told = () => resolve(true)))
        const goesOn = await Promise.race([more, exited.then(() => false)])
        if (!goesOn && !pattern.test(text.slice(from))) throw new Error(`ended without ${pattern}:\n${text}`)
      }
    },
    type: (typed) => void child.stdin.write(typed),
    async ended() {
      const [code] = (await exited) as [number | null]
      return code
    },
  }
}

function quoted(word: string): string {
  return `'${word.replaceAll("'", `'\\''`)}'`
}
