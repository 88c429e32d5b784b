/** Servers of `gatehouse up` that require a login. */
import { writeFileSync } from 'node:fs'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { UrlElicitationRequiredError } from '@modelcontextprotocol/sdk/types.js'
import t from 'tap'
import { Browser } from '../../helpers/authserver/cookie-browser.ts'
import { startProtectedServer } from '../../helpers/sign-in/rig.ts'
import { makeUpHome, type UpHome } from '../../helpers/up/up-home.ts'
import { untyped } from '../../helpers/untyped.ts'

t.setTimeout(300_000)

/** Adds a remote server to the file of Cursor. */
function addRemote(up: UpHome, url: string): void {
  const servers = { ...up.serversOf('cursor'), mail: { url } }
  writeFileSync(up.fileOf('cursor'), JSON.stringify({ mcpServers: servers }))
}

async function connectWithElicitation(up: UpHome): Promise<Client> {
  const { command, args } = untyped(up.serversOf('cursor')['gatehouse'])
  const client = new Client(
    { name: 'cursor', version: '1' },
    { capabilities: { elicitation: { form: {}, url: {} } } },
  )
  const env = { ...up.env } as Record<string, string>
  await client.connect(new StdioClientTransport({ command, args, env }))
  return client
}

async function elicitedUrls(client: Client): Promise<readonly string[]> {
  try {
    await client.callTool({ name: 'mail_whoami' })
  } catch (error) {
    if (error instanceof UrlElicitationRequiredError) return error.elicitations.map(({ url }) => url)
    throw error
  }
  return []
}

t.test(
  'up: shows where to sign in, and only its clients receive the address in an elicitation',
  async (t) => {
    const server = await startProtectedServer(t)
    const up = await makeUpHome(t, ['cursor'])
    addRemote(up, server.url)
    const before = up.read('cursor')

    const started = await up.up('--background')
    const line = /^ {2}sign in {3}mail {3}open (http:\/\/127\.0\.0\.1:\d+\/sign-in\/mail\?key=\S+)$/m
    const [, address = ''] = line.exec(started.stdout) ?? []
    t.ok(address, started.stdout)
    t.match(started.stdout, /^ {2}ready {5}files {3}1 tool$/m)
    t.strictSame(Object.keys(up.serversOf('cursor')), ['gatehouse'])
    const report = JSON.parse((await up.gatehouse('status', '--json')).stdout)
    t.match(report.servers, [{ name: 'files' }, { name: 'mail', state: 'sign in', signInUrl: address }])

    const client = await connectWithElicitation(up)
    t.teardown(() => client.close())
    t.strictSame(await elicitedUrls(client), [address])
    const listed = await up.gatehouse('tools', 'list', 'gatehouse')
    t.match(listed.stdout, /files_start/)
    t.match(listed.stderr, `mail requires a sign-in: open ${address}`)
    t.equal(listed.stderr.match(/mail/g)?.length, 2, 'one line, which contains the name twice')

    const step = /[Rr]un gatehouse tools list gatehouse, which prints the address where you sign in/
    const doctor = await up.gatehouse('doctor', 'gatehouse')
    t.equal(doctor.code, 1)
    t.match(
      doctor.stdout,
      /gateway\.backend: 1 of 2 backends is down: 1 waiting for a sign-in\n[^]*mail: Sign-in required\n/,
    )
    t.match(doctor.stdout, step)
    t.notMatch(doctor.stdout, 'gateway.problem', 'the cause is reported once')
    t.notMatch(doctor.stdout, new URL(address).search, 'a report that is shared contains no key')
    const explained = await up.gatehouse('explain', 'gatehouse', '--tool', 'mail_whoami')
    t.equal(explained.code, 1)
    t.match(explained.stdout, /STOP credential backend mail requires a sign-in \(since /)
    t.match(explained.stdout, step)

    const page = await new Browser().open(address)
    t.match(page.text, /You are signed in/)
    for (;;) {
      const { stdout } = await up.gatehouse('status')
      if (/^ {2}ready {5}files, mail {3}3 tools$/m.test(stdout)) break
    }
    const answer = untyped(await client.callTool({ name: 'mail_whoami' }))
    t.equal(answer.content[0].text, 'alice')
    await client.close()

    const locked = await up.gatehouse('lock', 'gatehouse')
    t.match(locked, { code: 2, stderr: /^mail: is not locked, .*; set --url mail=URL$/m })
    t.match(locked.stdout, /kind: MCPToolLock[\s\S]*name: files/, 'the local server is locked')
    t.equal((await up.gatehouse('down')).code, 0)
    t.equal(up.read('cursor'), before)
  },
)
