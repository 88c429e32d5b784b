/** Attacks on `gatehouse up` by another user of the machine, with a process of that user. */
import { chownSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { descendantsOf } from '../helpers/gatehouse.ts'
import { missingUser, publishHome, runAsOther } from '../helpers/up/other-user.ts'
import { connectThroughEntry, makeUpHome, secret } from '../helpers/up/up-home.ts'
import { untyped } from '../helpers/untyped.ts'

t.setTimeout(300_000)
const needsUser = { skip: missingUser }

const initialize = JSON.stringify({
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'x', version: '1' } },
})

t.test(
  'up: another user gets nothing from client files, processes and temporary files',
  needsUser,
  async (t) => {
    const up = await makeUpHome(t, ['claude-desktop', 'cursor'])
    const { code, stdout, stderr } = await up.up('--background', '--except', 'postgres')
    t.equal(code, 0, 'both servers are ready', { stdout, stderr })
    const client = await connectThroughEntry(up, 'cursor')
    t.teardown(() => client.close())
    const { tools } = await client.listTools()
    const status = tools.length === 2 ? undefined : (await up.gatehouse('status')).stdout
    t.equal(tools.length, 2, 'the first list is complete', { stdout, status })
    // The folders that Gatehouse itself made private stay as they are.
    const temporary = readdirSync(join(up.home, 'tmp')).filter((name) => name.startsWith('gatehouse-'))
    publishHome(up.home, (path) => path === up.state || temporary.some((name) => path.endsWith(name)))

    await t.test('a stolen client file opens no connection', async (t) => {
      const stolen = runAsOther('/bin/cat', [up.fileOf('cursor')])
      t.match(stolen.stdout, '"gatehouse"', 'the client’s file itself is readable')
      const { command, args } = untyped(up.serversOf('cursor')['gatehouse'])
      const { status, stdout, stderr } = runAsOther(command, args, { input: `${initialize}\n` })
      t.not(status, 0)
      t.equal(stdout, '', 'the stolen entry starts a program that gets no response')
      t.match(stderr, /--remote-auth-bearer-token-file/)
      t.match(stderr, /permission denied/i)
    })

    await t.test('command lines of all processes contain no token and no secret', async (t) => {
      const pids = [up.instance().pid, ...descendantsOf(up.instance().pid), ...descendantsOf(process.pid)]
      t.ok(pids.length >= 4, 'the instance, two servers and the bridge')
      const tokens = [up.token('cursor'), up.token('claude-desktop'), up.instance().control.token, secret]
      for (const pid of pids) {
        const seen = runAsOther('/bin/cat', [`/proc/${pid}/cmdline`]).stdout
        for (const token of tokens) t.notMatch(seen, token)
        t.not(runAsOther('/bin/cat', [`/proc/${pid}/environ`]).status, 0, 'variables are unreadable')
      }
    })

    await t.test('temporary files and the state folder are unreadable', async (t) => {
      t.ok(temporary.length > 0)
      for (const path of [up.state, ...temporary.map((name) => join(up.home, 'tmp', name))])
        t.not(runAsOther('/bin/ls', [path]).status, 0, path)
    })

    await t.test('the address rejects the other user', async (t) => {
      const script = `const response = await fetch(${JSON.stringify(up.url)}, {
      method: 'POST', body: ${JSON.stringify(initialize)},
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
    }); process.stdout.write(String(response.status))`
      t.equal(runAsOther(process.execPath, ['--input-type=module', '--eval', script]).stdout, '401')
    })

    t.notMatch(readFileSync(up.fileOf('cursor'), 'utf8'), up.token('cursor'))
  },
)

t.test('up: refuses a state folder that another user has made', needsUser, async (t) => {
  const up = await makeUpHome(t, ['cursor'])
  mkdirSync(up.state, { recursive: true })
  chownSync(up.state, 54_321, 54_321)
  t.match(await up.up('--background'), { code: 2, stderr: `${up.state} belongs to another user` })
  t.strictSame(up.changed(), [])
  t.strictSame(readdirSync(up.state), [], 'no token and no original file is written there')
  chownSync(up.state, 0, 0)
})

t.test('up: leaves a client file that belongs to another user', needsUser, async (t) => {
  const up = await makeUpHome(t, ['claude-desktop', 'cursor'])
  chownSync(up.fileOf('cursor'), 54_321, 54_321)
  const { code, stdout } = await up.up('--background', '--except', 'postgres')
  t.equal(code, 1)
  t.match(stdout, /^Cursor was not changed .*belongs to another user/m)
  t.strictSame(up.changed(), ['claude-desktop'])
})
