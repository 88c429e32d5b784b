/**
 * This very program in a thread of this process, in place of a process of its own: the proxies and virtual servers of a
 * session share one process, one loaded program and one set of system threads. Each has a heap, an event loop, an environment
 * and an output of its own, and may end or run out of memory by itself.
 *
 * It is asked to stop by a message, which runtime/toolkit/terminal/stop.ts takes for a signal.
 */
import { realpathSync } from 'node:fs'
import { isSea } from 'node:sea'
import { createInterface } from 'node:readline'
import { Worker } from 'node:worker_threads'
import { stopMessage } from '../../terminal/stop.ts'
import type { LocalProcess, ProcessSpec } from './process.ts'

/** Variables that only a process of its own reads at its start. */
const ofProcesses = /^(NODE_|UV_|SSL_CERT_|TZ$|LD_|LANG$|LC_)/

/** Whether a command can run in a thread: it is this program, asks for no processes, and has no environment of its own kind. */
export function runsInThread({ argv, env }: ProcessSpec, ownWords: number): boolean {
  if (ownWords === 0 || isSea() || argv.some((arg) => arg.startsWith('--workers'))) return false
  const names = new Set(
    [...Object.keys(env), ...Object.keys(process.env)].filter((name) => ofProcesses.test(name)),
  )
  return [...names].every((name) => env[name] === undefined || env[name] === process.env[name])
}

/** Starts the command in a thread. `onLine` gets its output. */
export function startThread(
  { argv, env }: ProcessSpec,
  ownWords: number,
  onLine: (line: string) => void,
): LocalProcess {
  const program = realpathSync(argv[ownWords - 1] ?? '')
  const thread = new Worker(program, {
    argv: argv.slice(ownWords),
    // Options of the process that starts it are not meant for it: a program of its own would not get them either.
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
