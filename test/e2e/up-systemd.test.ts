/**
 * `gatehouse up --at-login` with a real systemd user manager: a login starts the servers, a crash restarts them, a logout
 * stops them, and `down` removes the unit. The manager runs in its own namespaces, so it changes nothing outside them.
 */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { connectThroughEntry, makeUpHome, type UpHome } from '../helpers/up/up-home.ts'

t.setTimeout(600_000)

const manager = '/usr/lib/systemd/systemd'

/** A login session: systemd needs its own process ids, control groups and /run. */
const session = `
  mount -t cgroup2 none /sys/fs/cgroup || exit 9
  mkdir -p /sys/fs/cgroup/gatehouse-test-$1 && echo $$ > /sys/fs/cgroup/gatehouse-test-$1/cgroup.procs || exit 9
  mount -t tmpfs tmpfs /run && mkdir -p /run/systemd/system /run/user/0 && chmod 700 /run/user/0
  export XDG_RUNTIME_DIR=/run/user/0
  unset XDG_CONFIG_HOME XDG_STATE_HOME GATEHOUSE_STATE_DIR
  ${manager} --user &
  echo started
  while read -r line; do eval "$line"; echo "[$?]"; done
  systemctl --user exit
  wait
`
const namespaces = ['--mount', '--cgroup', '--pid', '--fork', '--mount-proc', '--kill-child']

function missingManager(): string | false {
  if (process.getuid?.() !== 0) return 'needs root, to make namespaces'
  if (!existsSync(manager)) return 'needs systemd'
  const probe = 'mount -t cgroup2 none /sys/fs/cgroup && mkdir -p /sys/fs/cgroup/gatehouse-probe'
  const { status } = spawnSync('unshare', [...namespaces, 'sh', '-c', probe], { stdio: 'ignore' })
  return status !== 0 && 'this machine allows no control groups in namespaces'
}

interface LoginSession {
  /** Runs a command in the session. Resolves to its output. */
  run(command: string): Promise<string>
  /** Ends the session, like a logout. */
  logOut(): Promise<void>
}

async function logIn(t: Test, up: UpHome): Promise<LoginSession> {
  const shell = spawn('unshare', [...namespaces, 'sh', '-c', session, 'sh', String(process.pid)], {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: { ...up.env, PATH: process.env['PATH'] ?? '' },
  })
  const exited = once(shell, 'exit')
  t.teardown(() => shell.kill('SIGKILL'))
  let text = ''
  shell.stdout.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
  const until = async (pattern: RegExp): Promise<string> => {
    for (;;) {
      const found = pattern.exec(text)
      if (found) {
        text = text.slice(found.index + found[0].length)
        return found[1] ?? ''
      }
      if (shell.exitCode !== null) throw new Error(`the session ended with ${shell.exitCode}: ${text}`)
      await delay(50)
    }
  }
  await until(/started\n/)
  const run = async (command: string): Promise<string> => {
    shell.stdin.write(`${command}\n`)
    return until(/([\s\S]*)\[\d+\]\n/)
  }
  for (;;) {
    if (/^running|^degraded/m.test(await run('systemctl --user is-system-running 2>&1'))) break
    await delay(100)
  }
  return {
    run,
    async logOut() {
      shell.stdin.end()
      await exited
    },
  }
}

const property = (name: string) => `systemctl --user show gatehouse-up.service --property=${name} --value`

/** Waits until an instance other than the killed one serves. */
async function untilServing(up: UpHome, killed: number | undefined): Promise<void> {
  const isServing = () => {
    if (!existsSync(join(up.state, 'instance.json'))) return false
    const { pid, control } = up.instance()
    return control !== undefined && pid !== killed
  }
  while (!isServing()) await delay(100)
}

t.test(
  'up: the unit starts at login, restarts after a crash, and ends with down',
  { skip: missingManager() },
  async (t) => {
    const up = await makeUpHome(t, ['cursor'])
    const started = await up.up('--at-login')
    t.equal(started.code, 0, started.stderr)
    // The machine is switched off.
    process.kill(up.instance().pid, 'SIGTERM')
    while (existsSync(join(up.state, 'instance.json'))) await delay(50)
    const parked = up.read('cursor')

    const first = await logIn(t, up)
    while ((await first.run(property('ActiveState'))).trim() !== 'active') await delay(200)
    await untilServing(up, undefined)
    const client = await connectThroughEntry(up, 'cursor')
    t.strictSame(
      (await client.listTools()).tools.map(({ name }) => name),
      ['files_start'],
    )
    await client.close()

    const pid = (await first.run(property('MainPID'))).trim()
    await first.run(`kill -KILL ${pid}`)
    while ((await first.run(property('NRestarts'))).trim() !== '1') await delay(500)
    t.pass('systemd has restarted the service after a crash')
    await untilServing(up, Number(pid))
    const again = await connectThroughEntry(up, 'cursor')
    t.equal((await again.listTools()).tools.length, 1)
    await again.close()

    await first.logOut()
    t.equal(up.read('cursor'), parked, 'a logout leaves the client’s file')
    t.notOk(existsSync(join(up.state, 'instance.json')), 'the service ended normally')

    const second = await logIn(t, up)
    while ((await second.run(property('ActiveState'))).trim() !== 'active') await delay(200)
    await untilServing(up, undefined)
    const program = `"${process.execPath}" "${join(process.cwd(), 'runtime/cli/main.ts')}"`
    t.match(await second.run(`${program} status`), /^ {2}ready {5}files/m)
    t.match(await second.run(`${program} down`), 'Removed the autostart at login:')
    t.equal((await second.run(property('LoadState'))).trim(), 'not-found')
    t.not((await second.run(property('ActiveState'))).trim(), 'active')
    t.strictSame(up.changed(), [])
    await second.logOut()
  },
)
