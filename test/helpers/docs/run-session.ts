/**
 * Runs a session: its commands word for word, one after the other. Where a page shows the output of a command, the real
 * output must contain the same lines.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { delimiter, dirname, join, resolve } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { Test } from 'tap'
import { program } from '../gatehouse.ts'
import { type PageCommand, commandsIn } from './commands.ts'
import type { Session, Step } from './sessions.ts'

const root = resolve(import.meta.dirname, '../../..')
const everything = join(root, 'node_modules/@modelcontextprotocol/server-everything/dist/index.js')
const waitMs = 120_000

/** Folder in which a session runs, and the environment of its commands. */
export interface Workspace {
  readonly folder: string
  readonly env: NodeJS.ProcessEnv
}

/** Returns the complete manifest of a page: its first indented block that starts with `apiVersion`. */
function manifestOf(page: string): string {
  const found = /\n\n((?: {4}.*\n|\n(?= {4}))*? {4}apiVersion:(?:.*\n| {4}.*\n|\n(?= {4}))+?)(?=\n\S)/.exec(
    readFileSync(join(root, page), 'utf8'),
  )
  return (found?.[1] ?? '').replaceAll(/^ {4}/gm, '')
}

/** Creates the workspace of a session, which contains the `gatehouse` command, the servers' packages and the manifests. */
export function makeWorkspace(
  t: Test,
  { files = {}, env = {} }: Session,
  options: SessionOptions = {},
): Workspace {
  const folder = t.testdir({ home: {}, bin: {} })
  const write = (path: string, text: string, mode = 0o644) => {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), text, { mode })
  }
  for (const [path, text] of Object.entries(files))
    write(path, text.startsWith('docs/') ? manifestOf(text) : text, path.startsWith('bin/') ? 0o755 : 0o644)
  write('bin/gatehouse', `#!/bin/sh\nexec ${process.execPath} ${program} "$@"\n`, 0o755)
  for (const [name, path] of Object.entries(options.programs ?? {}))
    symlinkSync(path, join(folder, 'bin', name))
  write('package.json', '{"private":true}')
  for (const name of ['node_modules', 'manifests']) symlinkSync(join(root, name), join(folder, name))
  const path = [join(folder, 'bin'), join(root, 'node_modules/.bin'), '/usr/local/bin:/usr/bin:/bin']
  return {
    folder,
    env: {
      ...env,
      ...options.env,
      HOME: join(folder, 'home'),
      TMPDIR: join(folder, 'home'),
      PATH: path.join(delimiter),
      npm_config_cache: join(folder, 'home/cache'),
      npm_config_offline: 'true',
      npm_config_update_notifier: 'false',
    },
  }
}

/** A command that runs in a workspace, with its output so far. */
export class CommandProcess {
  readonly #child: ChildProcess
  #output = ''
  #changed = Promise.withResolvers<void>()
  /** Resolves to the exit code, or to null when a signal ended the command. */
  readonly exitCode: Promise<number | null>

  constructor(command: string, { folder, env }: Workspace) {
    this.#child = spawn('sh', ['-c', command], {
      cwd: folder,
      env,
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    for (const stream of [this.#child.stdout, this.#child.stderr])
      stream?.setEncoding('utf8').on('data', (text: string) => {
        this.#output += text
        this.#changed.resolve()
        this.#changed = Promise.withResolvers()
      })
    this.exitCode = once(this.#child, 'close').then(([code]: (number | null)[]) => code ?? null)
  }

  get output(): string {
    return this.#output
  }

  /** Resolves to true when the output matches, or to false when the program ends or the time limit expires first. */
  async waitForOutput(pattern: RegExp): Promise<boolean> {
    const end = Promise.race([this.exitCode, pause(waitMs, undefined, { ref: false })]).then(() => 'end')
    while (!pattern.test(this.#output))
      if ((await Promise.race([this.#changed.promise, end])) === 'end') return pattern.test(this.#output)
    return true
  }

  /** Interrupts the command as Ctrl-C does, and kills its process group after ten seconds. */
  async interrupt(): Promise<void> {
    if (this.#child.pid === undefined) return
    const pid = this.#child.pid
    const kill = (signal: NodeJS.Signals) => {
      try {
        process.kill(-pid, signal)
      } catch {
        // The process group has already ended.
      }
    }
    kill('SIGINT')
    await Promise.race([this.exitCode, pause(10_000, undefined, { ref: false })])
    kill('SIGKILL')
    await this.exitCode
  }
}

async function startServer(t: Test, port: number): Promise<void> {
  const env = { ...process.env, PORT: String(port) }
  const child = spawn(process.execPath, [everything, 'streamableHttp'], { env, stdio: 'ignore' })
  t.teardown(() => child.kill('SIGKILL'))
  for (let attempt = 0; attempt < 200; attempt += 1) {
    const socket = connect(port, '127.0.0.1')
    const isOpen = await once(socket, 'connect').then(
      () => true,
      () => false,
    )
    socket.destroy()
    if (isOpen) return
    await pause(100)
  }
  throw new Error(`no server on port ${port}`)
}

/** Checks that the output contains each line that the page shows, except `…`. Ignores spaces at either end of a line. */
function checkShownOutput(t: Test, { output, text }: PageCommand, actual: string): void {
  const lines = new Set(actual.split('\n').map((line) => line.trim()))
  for (const line of output.map((shown) => shown.trim())) {
    if (line === '…') continue
    t.ok(lines.has(line), `${text} prints "${line}"`)
  }
}

export interface SessionOptions {
  /** Additional environment variables. */
  readonly env?: NodeJS.ProcessEnv
  /** Programs in PATH, by name. */
  readonly programs?: Readonly<Record<string, string>>
}

/** Runs the session in new folders and adds the results to `t`. */
export async function runSession(t: Test, session: Session, options: SessionOptions = {}): Promise<void> {
  const workspace = makeWorkspace(t, session, options)
  for (const port of session.servers ?? []) await startServer(t, port)
  const background: CommandProcess[] = []
  const stopAll = async () => {
    for (const started of background.splice(0)) await started.interrupt()
  }
  t.teardown(stopAll)
  for (const { command, ready } of session.peers ?? []) {
    const peer = new CommandProcess(command, workspace)
    t.teardown(() => peer.interrupt())
    t.ok(await peer.waitForOutput(ready), command, { output: peer.output })
  }
  for (const step of session.steps) {
    if (step.isAlone) await stopAll()
    const started = new CommandProcess(step.command, workspace)
    if (step.ready) {
      background.push(started)
      const isReady = await started.waitForOutput(step.ready)
      t.ok(isReady, step.command, { output: started.output })
    } else await checkExit(t, step, started)
    const inPage = commandsIn(join(root, step.page)).find(({ text }) => text === step.command)
    t.ok(inPage, `${step.page} contains ${step.command}`)
    if (inPage) checkShownOutput(t, inPage, started.output)
  }
}

/** Waits for the command to end, and checks its exit code and output. */
async function checkExit(
  t: Test,
  { command, prints, code: expected = 0 }: Step,
  started: CommandProcess,
): Promise<void> {
  const code = await Promise.race([started.exitCode, pause(waitMs, 'too late', { ref: false })])
  if (code === 'too late') await started.interrupt()
  t.equal(code, expected, command, { output: started.output })
  if (prints) t.match(started.output, prints, command)
}
