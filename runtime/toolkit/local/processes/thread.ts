/**
 * Runs this program in a worker thread instead of a separate process. A session's proxies and virtual servers share one
 * process, one loaded copy of the program and one set of system threads. Each thread has its own heap, event loop,
 * environment and output, and can exit or run out of memory without affecting other threads.
 *
 * A message requests that the thread stop; runtime/toolkit/terminal/stop.ts treats it like a signal.
 */
import { realpathSync } from 'node:fs'
import { isSea } from 'node:sea'
import { createInterface } from 'node:readline'
import { Worker } from 'node:worker_threads'
import { stopMessage } from '../../terminal/stop.ts'
import type { LocalProcess, ProcessSpec } from './process.ts'

/** Variables that take effect only when a process starts. */
const processVariables = /^(NODE_|UV_|SSL_CERT_|TZ$|LD_|LANG$|LC_)/

/**
 * True when a command can run in a thread: it must run this program, and must not start workers or change process-level
 * variables.
 */
export function canRunInThread({ argv, env }: ProcessSpec, ownWords: number): boolean {
  if (ownWords === 0 || isSea() || argv.some((arg) => arg.startsWith('--workers'))) return false
  const names = new Set(
    [...Object.keys(env), ...Object.keys(process.env)].filter((name) => processVariables.test(name)),
  )
  return [...names].every((name) => env[name] === undefined || env[name] === process.env[name])
}

/** Starts the command in a thread. `onLine` receives the thread's output. */
export function startThread(
  { argv, env }: ProcessSpec,
  ownWords: number,
  onLine: (line: string) => void,
): LocalProcess {
  const program = realpathSync(argv[ownWords - 1] ?? '')
  const thread = new Worker(program, {
    argv: argv.slice(ownWords),
    // Do not inherit this process's Node options, because a separate process would not inherit them either.
    execArgv: [],
    env: { ...env },
    stdout: true,
    stderr: true,
  })
  const ended = [thread.stdout, thread.stderr].map((stream) => {
    const lines = createInterface({ input: stream }).on('line', onLine)
    return new Promise<void>((done) => lines.once('close', done))
  })
  const exited = new Promise<string>((resolve) => {
    let reason: string | undefined
    thread.once('error', (error: NodeJS.ErrnoException) => {
      reason = error.code === 'ERR_WORKER_OUT_OF_MEMORY' ? 'ran out of memory' : `failed: ${error.message}`
    })
    thread.once('exit', (code) => {
      void Promise.all(ended).then(() => resolve(reason ?? `exited with code ${code}`))
    })
  })
  return {
    pid: undefined,
    exited,
    async stop(graceMs) {
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread of our own, not a window
      thread.postMessage(stopMessage)
      const timer = setTimeout(() => void thread.terminate(), graceMs)
      await exited
      clearTimeout(timer)
    },
  }
}
