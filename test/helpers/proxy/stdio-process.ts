/** A `gatehouse proxy stdio` process, as desktop clients start it, with a clock that the test sets. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Test } from 'tap'
import { program } from '../gatehouse.ts'
import { untyped } from '../untyped.ts'
import { initialize } from './stdio-rig.ts'

export interface StdioProcess {
  readonly pid: number
  /** Resolves with the first line on standard error that matches; rejects when the process ends first. */
  errorLine(pattern: RegExp): Promise<RegExpExecArray>
  /** Complete standard error. */
  errors(): string
  /** Initializes the server. The client sends nothing in the background afterwards. */
  open(): Promise<void>
  /** Calls a tool. Resolves with the response, or with undefined when the process ends first. */
  call(): Promise<unknown>
  /** Sets the clock this many milliseconds ahead of the machine's. */
  ahead(ms: number): Promise<void>
  /** Resolves when the process has ended. */
  readonly ended: Promise<unknown>
}

export function startStdioProcess(
  t: Pick<Test, 'teardown'>,
  args: readonly string[],
  stateDir: string,
): StdioProcess {
  const name = `clock-${Math.random().toString(36).slice(2)}`
  const clockFile = join(stateDir, name)
  const child = spawn(process.execPath, [program, 'proxy', 'stdio', ...args], {
    stdio: ['pipe', 'pipe', 'pipe'],
    env: {
      ...process.env,
      GATEHOUSE_STATE_DIR: stateDir,
      NODE_OPTIONS: `--import=${join(import.meta.dirname, '../moved-clock.ts')}`,
      TEST_CLOCK_FILE: clockFile,
    },
  })
  const ended = once(child, 'close')
  t.teardown(async () => {
    child.kill('SIGKILL')
    await ended
  })
  child.stdin.on('error', () => {})
  let errors = ''
  const watching = new Set<() => void>()
  const told = (): void => {
    for (const look of watching) look()
  }
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
    errors += chunk
    told()
  })
  let isOver = false
  const waiting = new Map<number, (message: unknown) => void>()
  createInterface({ input: child.stdout }).on('line', (line) => {
    const message = untyped(JSON.parse(line))
    waiting.get(message.id)?.(message)
    waiting.delete(message.id)
  })
  void ended.then(() => {
    isOver = true
    for (const resolve of waiting.values()) resolve(undefined)
    told()
  })
  let lastId = 0
  let moves = 0
  const ask = (method: string, params: object): Promise<unknown> => {
    const id = ++lastId
    if (isOver) return Promise.resolve(undefined)
    const response = new Promise<unknown>((resolve) => waiting.set(id, resolve))
    child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`)
    return response
  }
  function errorLine(pattern: RegExp): Promise<RegExpExecArray> {
    return new Promise((resolve, reject) => {
      const look = (): void => {
        const match = pattern.exec(errors)
        if (!match && !isOver) return
        watching.delete(look)
        if (match) resolve(match)
        else reject(new Error(`the process ended: ${errors}`))
      }
      watching.add(look)
      look()
    })
  }
  return {
    pid: child.pid ?? 0,
    errorLine,
    errors: () => errors,
    ended,
    async open() {
      if ((await ask('initialize', initialize.params)) === undefined)
        throw new Error(`no response: ${errors}`)
    },
    call: () => ask('tools/call', { name: 'echo', arguments: {} }),
    async ahead(ms) {
      writeFileSync(clockFile, String(ms))
      moves += 1
      const moved = errorLine(new RegExp(`the clock is ${ms} ms ahead, move ${moves}\\n`))
      child.kill('SIGUSR2')
      await moved
    },
  }
}
