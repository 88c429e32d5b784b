/** `proxy stdio` with credentials: bearer token, injected headers, and a login while the client waits. */
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import t, { type Test } from 'tap'
import { program, runGatehouse } from '../../../helpers/gatehouse.ts'
import { startOidcProvider, walk } from '../../../helpers/authserver/oidc-provider.ts'
import { proves } from '../../../helpers/proves.ts'
import { rpc, startUpstream, type Upstream } from '../../../helpers/proxy/rig.ts'
import { startStdio } from '../../../helpers/proxy/stdio-rig.ts'
import { untyped } from '../../../helpers/untyped.ts'

proves('1.command.stdio')

/** A minimal MCP server that only accepts requests with this authorization. */
async function startGuarded(t: Test, isGood: (authorization: string) => boolean): Promise<Upstream> {
  const target = await startUpstream((seen, res) => {
    if (!isGood(seen.headers.authorization ?? '')) {
      res.writeHead(401, { 'WWW-Authenticate': 'Bearer realm="target"' }).end('<h1>go away</h1>')
      return
    }
    if (seen.method !== 'POST') return void res.writeHead(405).end()
    const { id, method }: { id?: unknown; method?: string } = untyped(JSON.parse(seen.body))
    const result =
      method === 'initialize'
        ? {
            protocolVersion: '2025-11-25',
            capabilities: { tools: {} },
            serverInfo: { name: 'guarded', version: '1' },
          }
        : { tools: [] }
    if (id === undefined) res.writeHead(202).end()
    else
      res
        .writeHead(200, { 'Content-Type': 'application/json' })
        .end(JSON.stringify({ jsonrpc: '2.0', id, result }))
  })
  t.teardown(() => target.close())
  return target
}

await t.test('credentials: token file, headers and secrets reach the server', async (t) => {
  const target = await startGuarded(t, (authorization) => authorization === 'Bearer s3cret')
  const path = join(mkdtempSync(join(tmpdir(), 'stdio-')), 'token')
  writeFileSync(path, 's3cret\n')
  const bridge = startStdio(t, `${target.url}/mcp?key=k`, {
    input: { remoteAuthBearerTokenFile: path, remoteForwardHeaders: ['X-Team=blue'] },
  })
  bridge.send(rpc(1, 'tools/list'))
  t.match(await bridge.message(), { id: 1, result: { tools: [] } })
  t.match(target.seen[0], { url: '/mcp?key=k', headers: { 'x-team': 'blue' } })
})

await t.test('credentials: a rejection has the request’s id and the next step', async (t) => {
  const target = await startGuarded(t, () => false)
  const bare = startStdio(t, `${target.url}/mcp`)
  bare.send(rpc(1, 'tools/list'))
  const line = await bare.next()
  t.match(JSON.parse(line), {
    id: 1,
    error: { code: -32603, message: /HTTP 401: sign in with --remote-auth/ },
  })
  t.notMatch(line, 'go away')
  const wrong = startStdio(t, `${target.url}/mcp`, { input: { remoteAuthBearerToken: 'wrong-token' } })
  wrong.send(rpc(2, 'tools/list'))
  const response = await wrong.next()
  t.match(JSON.parse(response), { id: 2, error: { code: -32603 } })
  t.notMatch(response, 'wrong-token')
})

await t.test(
  'login: the client waits while the user signs in, and the URL is only on standard error',
  async (t) => {
    const target = await startGuarded(t, (authorization) => authorization.startsWith('Bearer eyJ'))
    const idp = await startOidcProvider({ resources: { [target.url]: {}, [`${target.url}/mcp`]: {} } })
    t.teardown(() => idp.close())
    const transport = new StdioClientTransport({
      command: process.execPath,
      args: [
        program,
        'proxy',
        'stdio',
        '--remote-auth',
        '--remote-auth-issuer',
        idp.issuer,
        '--remote-auth-skip-browser',
        '--remote-auth-callback-port',
        '0',
        '--remote-auth-ephemeral',
        `${target.url}/mcp`,
      ],
      stderr: 'pipe',
    })
    let errors = ''
    const shown = new Promise<string>((resolve) => {
      const stderr: Readable = untyped(transport.stderr)
      stderr.on('data', (text: Buffer) => {
        errors += text.toString()
        const url = /Please open this URL in your browser: (\S+)\n/.exec(errors)?.[1]
        if (url !== undefined) resolve(url)
      })
    })
    const violations: Error[] = []
    const client = Object.assign(new Client({ name: 'test', version: '1' }), {
      onerror: (error: Error) => violations.push(error),
    })
    const connected = client.connect(transport)
    t.teardown(() => client.close())
    await fetch(await walk(await shown, 'http://localhost:'))
    await connected
    t.equal(client.getServerVersion()?.name, 'guarded')
    t.same((await client.listTools()).tools, [])
    t.same(violations, [], 'standard output contains only messages')
    t.notMatch(errors, /eyJ/, 'no token in the log')
  },
)

await t.test(
  'command: a failed login exits with 3, and contradictory flags exit with 2 before any request',
  async (t) => {
    const target = await startGuarded(t, () => false)
    const idp = await startOidcProvider({ resources: { [target.url]: {} } })
    t.teardown(() => idp.close())
    const args = [
      'proxy',
      'stdio',
      '--remote-auth',
      '--remote-auth-issuer',
      idp.issuer,
      '--remote-auth-skip-browser',
    ]
    const more = [
      '--remote-auth-callback-port',
      '0',
      '--remote-auth-ephemeral',
      '--remote-auth-timeout',
      '100ms',
    ]
    const late = await runGatehouse([...args, ...more, `${target.url}/mcp`], `${rpc(1)}\n`)
    t.match(late, { code: 3, stderr: /failed to authenticate to remote server/ })
    t.match(JSON.parse(late.stdout), { id: 1, error: { code: -32603 } }, 'the pending request is answered')
    const both = await runGatehouse([...args, '--remote-auth-bearer-token', 'x', `${target.url}/mcp`])
    t.match(both, { code: 2, stdout: '', stderr: /mutually exclusive/ })
    t.match(
      await runGatehouse([
        'proxy',
        'stdio',
        '--token-exchange-url',
        'https://x.example',
        `${target.url}/mcp`,
      ]),
      {
        code: 2,
        stderr: /--token-exchange-url/,
      },
    )
    t.notOk(
      target.seen.some(({ body }) => body.includes('"id":1,')),
      'the message was not sent',
    )
  },
)
