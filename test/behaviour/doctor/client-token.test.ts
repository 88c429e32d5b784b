/** `gatehouse doctor --client --token-file`: the token is sent only to the named entry. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { sendJson, startBare } from '../../helpers/doctor/staged.ts'
import { program, runGatehouse } from '../../helpers/gatehouse.ts'

t.setTimeout(120_000)

const token = 'a-token-of-one-server'

async function server() {
  const seen = new Set<string>()
  const bare = await startBare((req, res) => {
    if (req.headers.authorization !== undefined) seen.add(req.headers.authorization)
    sendJson(res, { error: 'no' }, 401)
  })
  t.teardown(() => bare.close())
  return { url: `http://127.0.0.1:${bare.port}/mcp`, seen }
}

const [one, two] = [await server(), await server()]
const home = t.testdir({ 'token.txt': token })
const folder = join(home, 'project')
mkdirSync(join(home, '.cursor'))
mkdirSync(folder)
const file = (entries: object) => JSON.stringify({ mcpServers: entries })
writeFileSync(
  join(home, '.cursor/mcp.json'),
  file({
    one: { url: one.url },
    two: { url: two.url, headers: { Authorization: 'Bearer its-own' } },
    off: { command: 'x' },
  }),
)
const env = { ...process.env, HOME: home, XDG_CONFIG_HOME: '' }

function doctor(...args: readonly string[]) {
  return runGatehouse(['doctor', ...args, '--token-file', join(home, 'token.txt'), '-o', 'json'], '', env)
}

await t.test('without the name of an entry, no request is sent', async (t) => {
  const { code, stdout, stderr } = await doctor('--client', 'cursor')
  t.match(
    { code, stdout, stderr },
    { code: 2, stdout: '', stderr: /--token-file: .*select the entry.*--entry NAME/ },
  )
  t.match(await doctor('--client', 'cursor', '--entry', 'three'), { code: 2, stderr: /no entry three/ })
  t.match(await doctor('--client', 'cursor', '--entry', 'off'), {
    code: 2,
    stderr: /off is not an enabled entry with a URL/,
  })
  t.same([...one.seen, ...two.seen], [])
})

await t.test(
  'the named entry gets the token instead of its own, and no other entry gets a request',
  async (t) => {
    const { stdout } = await doctor('--client', 'cursor', '--entry', 'two')
    t.match(stdout, two.url)
    t.notMatch(stdout, one.url)
    t.same([...two.seen], [`Bearer ${token}`])
    t.same([...one.seen], [])
  },
)

await t.test('an entry name that occurs in several files is rejected', async (t) => {
  mkdirSync(join(folder, '.cursor'))
  writeFileSync(join(folder, '.cursor/mcp.json'), file({ one: { url: two.url } }))
  const args = ['doctor', '--client', 'cursor', '--entry', 'one', '--token-file', join(home, 'token.txt')]
  const { spawnSync } = await import('node:child_process')
  const ran = spawnSync(process.execPath, [program, ...args], { cwd: folder, env, encoding: 'utf8' })
  t.match(ran, { status: 2, stderr: /--token-file: one occurs in several files, .*--client FILE/ })
  t.same([...one.seen], [])
})
