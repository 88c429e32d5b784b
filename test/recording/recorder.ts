/**
 * Runs commands in an installed package's environment, records each command and its output with their times, and prints
 * them.
 */
import { spawn } from 'node:child_process'
import type { Recorded } from './cast.ts'

export interface Running {
  readonly ended: Promise<number | null>
  /** Everything printed so far, both streams. */
  readonly output: () => string
  /** Rejects when the program ends first. */
  readonly sees: (pattern: RegExp) => Promise<RegExpExecArray>
  readonly interrupt: () => void
}

export interface RecorderOptions {
  readonly cwd: string
  readonly env: NodeJS.ProcessEnv
  /** Applied to the recorded text, for instance to hide keys. */
  readonly mask?: (text: string) => string
}

export class Recorder {
  readonly recorded: Recorded[] = []
  readonly #startedAt = performance.now()
  readonly #options: RecorderOptions

  constructor(options: RecorderOptions) {
    this.#options = options
  }

  record(text: string): void {
    const { mask = (same: string) => same } = this.#options
    const masked = mask(text)
    this.recorded.push({ atMs: performance.now() - this.#startedAt, text: masked })
    process.stdout.write(masked)
  }

  start(line: string): Running {
    this.record(`$ ${line}\n`)
    const child = spawn('/bin/sh', ['-c', `exec ${line}`], {
      cwd: this.#options.cwd,
      env: this.#options.env,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let text = ''
    const heard = new EventTarget()
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk
        this.record(chunk)
        heard.dispatchEvent(new Event('text'))
      })
    }
    const ended = new Promise<number | null>((done) => child.once('close', done))
    return {
      ended,
      output: () => text,
      async sees(pattern) {
        const over = ended.then(() => 'over')
        for (;;) {
          const match = pattern.exec(text)
          if (match) return match
          const more = new Promise((done) => heard.addEventListener('text', done, { once: true }))
          if ((await Promise.race([more, over])) === 'over' && !pattern.test(text))
            throw new Error(`ended without ${pattern}:\n${text}`)
        }
      },
      interrupt: () => child.kill('SIGINT'),
    }
  }

  /** Runs a command to its end. Resolves to its output. Rejects when its exit code is unexpected. */
  async run(line: string, { code = 0 }: { readonly code?: number } = {}): Promise<string> {
    const running = this.start(line)
    const found = await running.ended
    if (found !== code) throw new Error(`"${line}" ended with code ${found}:\n${running.output()}`)
    return running.output()
  }
}
