/** Runs the public "everything" server from npm over HTTP, as its own process that can be killed and restarted. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import type { Test } from 'tap'
import { freePort } from '../gatehouse.ts'

const everythingProgram = 'node_modules/@modelcontextprotocol/server-everything/dist/index.js'

export interface Everything {
  readonly url: string
  readonly origin: string
  /** Kills the process without warning. */
  kill(): Promise<void>
  /** Restarts it on the same port. Resolves when it listens. */
  start(): Promise<void>
}

/** Resolves when the server listens. */
export async function startEverything(t: Test, transport: 'streamableHttp' | 'sse'): Promise<Everything> {
  const port = await freePort()
  const origin = `http://127.0.0.1:${port}`
  let child: ChildProcess | undefined
  async function start(): Promise<void> {
    const started = spawn(process.execPath, [everythingProgram, transport], {
      env: {
        PATH: process.env['PATH'],
        NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'],
        PORT: String(port),
      },
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    child = started
    for await (const line of createInterface({ input: started.stderr }))
      if (line.includes(String(port))) break
    started.stderr.resume()
  }
  async function kill(): Promise<void> {
    if (!child || child.exitCode !== null || child.signalCode !== null) return
    child.kill('SIGKILL')
    await once(child, 'exit')
  }
  t.teardown(kill)
  await start()
  return { url: `${origin}/${transport === 'sse' ? 'sse' : 'mcp'}`, origin, kill, start }
}
