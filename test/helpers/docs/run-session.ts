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

export interface Place {
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

/** Creates a session's folders, which contain the `gatehouse` command, the servers' packages and the manifests. */
export function prepare(t: Test, { files = {}, env = {} }: Session, options: SessionOptions): Place {
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

/** A command that runs in a session's folder, with its output so far. */
export class Running {
  readonly #child: ChildProcess
  #output = ''
  #changed = Promise.withResolvers<void>()
  readonly ended: Promise<number | null>

  constructor(command: string, { folder, env }: Place) {
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
    this.ended = once(this.#child, 'close').then(([code]: (number | null)[]) => code ?? null)
  }

  get output(): string {
    return this.#output
  }

  /** Resolves to true when the output matches, and to false when the program ends first or the time limit expires. */
  async sees(pattern: RegExp): Promise<boolean> {
    const over = Promise.race([this.ended, pause(waitMs, undefined, { ref: false })]).then(() => 'over')
    while (!pattern.test(this.#output))
      if ((await Promise.race([this.#changed.promise, over])) === 'over') return pattern.test(this.#output)
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
    await Promise.race([this.ended, pause(10_000, undefined, { ref: false })])
    kill('SIGKILL')
    await this.ended
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
function checkShown(t: Test, { output, text }: PageCommand, real: string): void {
  const lines = new Set(real.split('\n').map((line) => line.trim()))
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
  const place = prepare(t, session, options)
  for (const port of session.servers ?? []) await startServer(t, port)
  const background: Running[] = []
  const endAll = async () => {
    for (const running of background.splice(0)) await running.interrupt()
  }
  t.teardown(endAll)
  for (const step of session.steps) {
    if (step.isAlone) await endAll()
    const running = new Running(step.command, place)
    if (step.ready) {
      background.push(running)
      const isSeen = await running.sees(step.ready)
      t.ok(isSeen, step.command, { output: running.output })
    } else await checkEnded(t, step, running)
    const shown = commandsIn(join(root, step.page)).find(({ text }) => text === step.command)
    t.ok(shown, `${step.page} contains ${step.command}`)
    if (shown) checkShown(t, shown, running.output)
  }
}

async function checkEnded(
  t: Test,
  { command, prints, code: expected = 0 }: Step,
  running: Running,
): Promise<void> {
  const code = await Promise.race([running.ended, pause(waitMs, 'too late', { ref: false })])
  if (code === 'too late') await running.interrupt()
  t.equal(code, expected, command, { output: running.output })
  if (prints) t.match(running.output, prints, command)
}
