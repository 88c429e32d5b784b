/** The files that start `gatehouse up` at login. launchd and Task Scheduler files are checked for their syntax only. */
import { spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, readlinkSync, realpathSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { loginStart } from '../../../runtime/tools/up/login/at-login.ts'
import { launchdAgent, scheduledTask, systemdUnit } from '../../../runtime/tools/up/login/login-files.ts'

const program = {
  argv: ['/opt/node 24/bin/node', '/opt/100%/$HOME/"gatehouse".js', 'up', '--resume'],
  env: { PATH: '/usr/bin:/opt/a b', GATEHOUSE_STATE_DIR: '/state/<&>' },
  home: '/home/ana',
}

t.test('systemd: the unit quotes special characters', async (t) => {
  const unit = systemdUnit(program)
  t.match(
    unit,
    '\nExecStart="/opt/node 24/bin/node" "/opt/100%%/$$HOME/\\"gatehouse\\".js" "up" "--resume"\n',
  )
  t.match(unit, '\nEnvironment="PATH=/usr/bin:/opt/a b"\n')
  t.match(unit, '\nRestartPreventExitStatus=2\n')
})

const hasAnalyze = spawnSync('systemd-analyze', ['--version']).error === undefined
const needsAnalyze = { skip: !hasAnalyze && 'needs systemd-analyze' }

t.test('systemd: systemd-analyze accepts the unit', needsAnalyze, async (t) => {
  const folder = t.testdir({})
  const file = join(folder, 'gatehouse-up.service')
  writeFileSync(file, systemdUnit({ ...program, argv: [process.execPath, '/a b', 'up'], home: folder }))
  const { status, stderr } = spawnSync('systemd-analyze', ['--user', 'verify', file], {
    encoding: 'utf8',
    env: { ...process.env, XDG_RUNTIME_DIR: folder },
  })
  t.equal(status, 0, stderr)
})

t.test('systemd: install and remove write the unit and its link', async (t) => {
  const home = realpathSync(t.testdir({}))
  const host = { platform: 'linux' as const, home, cwd: home, env: { PATH: '/bin' }, list: () => [] }
  const start = loginStart(host)
  t.equal(start.remove(), undefined)
  const unit = start.install()
  t.equal(unit, join(home, '.config/systemd/user/gatehouse-up.service'))
  t.match(readFileSync(unit, 'utf8'), /^ExecStart=.* "up" "--resume"$/m)
  const link = join(home, '.config/systemd/user/default.target.wants/gatehouse-up.service')
  t.equal(readlinkSync(link), '../gatehouse-up.service')
  t.equal(start.install(), unit, 'a second install replaces the first one')
  t.equal(start.remove(), unit)
  t.throws(() => readlinkSync(link), { code: 'ENOENT' })
  t.equal(start.remove(), undefined)
})

t.test('launchd: install and remove write the agent', async (t) => {
  const home = realpathSync(t.testdir({}))
  mkdirSync(join(home, 'Library'))
  const host = { platform: 'darwin' as const, home, cwd: home, env: {}, list: () => [] }
  const agent = loginStart(host).install()
  t.equal(agent, join(home, 'Library/LaunchAgents/dev.gatehouse.up.plist'))
  t.equal(loginStart(host).remove(), agent)
  t.equal(loginStart(host).remove(), undefined)
})

/** Returns the elements of an XML document in order. Fails for unbalanced elements and unescaped text. */
function elementsOf(text: string): readonly string[] {
  const open: string[] = []
  const found: string[] = []
  const body = text.replace(/^<\?xml[^>]*\?>/, '').replace(/<!DOCTYPE[^>]*>/, '')
  for (const [, closing, name = '', single, characters = ''] of body.matchAll(
    /<(\/?)([A-Za-z]+)[^<>]*?(\/?)>([^<]*)/g,
  )) {
    if (/&(?!amp;|lt;|gt;|quot;)/.test(characters)) throw new Error(`unescaped: ${characters}`)
    found.push(name)
    if (closing) {
      if (open.pop() !== name) throw new Error(`unbalanced: ${name}`)
    } else if (!single) open.push(name)
  }
  if (open.length > 0) throw new Error(`not closed: ${open.join(', ')}`)
  return found
}

t.test('launchd: the agent is well-formed XML with the program and its variables', async (t) => {
  const agent = launchdAgent('dev.gatehouse.up', program)
  t.ok(elementsOf(agent).includes('dict'))
  t.match(agent, '<string>/opt/100%/$HOME/&quot;gatehouse&quot;.js</string>')
  t.match(agent, '<key>GATEHOUSE_STATE_DIR</key><string>/state/&lt;&amp;&gt;</string>')
  t.match(agent, '<key>RunAtLoad</key><true/>')
})

t.test('Task Scheduler: the task is well-formed XML with a quoted command line', async (t) => {
  const task = scheduledTask({
    ...program,
    argv: ['C:\\Program Files\\node.exe', 'C:\\a "b"\\', 'up', '--resume'],
  })
  t.ok(elementsOf(task).includes('LogonTrigger'))
  t.match(task, '<Command>C:\\Program Files\\node.exe</Command>')
  t.match(task, '<Arguments>&quot;C:\\a \\&quot;b\\&quot;\\\\&quot; up --resume</Arguments>')
})
