/** Attacks on `gatehouse up` through the contents of files: a project's file, and client files with hostile names. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { makeUpHome } from '../helpers/up/up-home.ts'

t.setTimeout(300_000)

t.test('up: a project’s file keeps its bytes, and contains no token', async (t) => {
  const up = await makeUpHome(t, ['cursor'])
  const folder = join(up.home, 'project/.cursor')
  mkdirSync(folder, { recursive: true })
  const file = join(folder, 'mcp.json')
  const servers = { ...up.serversOf('cursor'), shared: up.serversOf('cursor')['files'] }
  const text = `${JSON.stringify({ mcpServers: servers }, undefined, 3)}\r\n`
  writeFileSync(file, text)
  const { stdout } = await up.up('--background', '--from', file, '--connect', 'cursor')
  t.match(stdout, /ready .*files/)
  t.equal(readFileSync(file, 'utf8'), text)
  t.strictSame(up.changed(), ['cursor'])
  t.equal((await up.gatehouse('down')).code, 0)
  t.equal(readFileSync(file, 'utf8'), text)
  t.strictSame(up.changed(), [])
})

t.test('up: names in a file cannot forge lines or control the terminal', async (t) => {
  const up = await makeUpHome(t, ['cursor'])
  const forged = 'x\r\n  ready     bank   9 tools'
  const control = 'a\u001b]0;title\u0007\u009b31m\u202e'
  const servers = {
    [forged]: { command: 'not-installed' },
    [control]: { command: `no-such\u001b[2Jprogram` },
    ...up.serversOf('cursor'),
  }
  writeFileSync(up.fileOf('cursor'), JSON.stringify({ mcpServers: servers }))
  const before = up.read('cursor')
  for (const args of [['--dry-run'], ['--yes', '--background', '--port', String(up.port)]]) {
    const { stdout, stderr } = await up.gatehouse('up', ...args)
    // oxlint-disable-next-line no-control-regex
    t.notMatch(stdout + stderr, /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/, 'no control characters')
    t.notMatch(stdout, /^ {2}ready {5}bank/m)
    t.match(stdout, /skipped/)
  }
  const status = await up.gatehouse('status')
  // oxlint-disable-next-line no-control-regex
  t.notMatch(status.stdout, /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/)
  t.equal((await up.gatehouse('down')).code, 0)
  t.equal(up.read('cursor'), before)
})

t.test('down: keeps an entry that another program has changed, and reports it', async (t) => {
  const up = await makeUpHome(t, ['cursor'])
  await up.up('--background')
  const hostile = up.read('cursor').replace(String(up.port), '1')
  writeFileSync(up.fileOf('cursor'), hostile)
  const { code, stdout } = await up.gatehouse('down')
  t.equal(code, 0)
  t.match(stdout, /^Cursor: .*kept "gatehouse", which has changed/m)
  t.strictSame(Object.keys(up.serversOf('cursor')).toSorted(), ['files', 'gatehouse'])
})
