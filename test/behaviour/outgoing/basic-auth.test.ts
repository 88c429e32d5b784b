/** Type basicAuth: user name and password from Secrets, sent as HTTP Basic credentials (RFC 7617). */
import { mkdtempSync, writeFileSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { stringify } from 'yaml'
import { validateResource } from '../../../hooks/index.ts'
import { loadProxyFile, resolveProxyFile } from '../../../runtime/config/index.ts'
import { makeLog } from '../../../runtime/observe/index.ts'
import { makeOutgoing, type StrategyConfig } from '../../../runtime/outgoing/index.ts'
import { runProxy } from '../../../runtime/proxy/index.ts'
import { formatViolations, validateRuntime } from '../../../schemas/index.ts'
import { startRawBackend } from '../../helpers/mcp/raw-backend.ts'
import { openSession, stateless } from '../../helpers/mcp/wire.ts'
import { testRequest } from '../../helpers/outgoing/outgoing.ts'
import { bareNames, startTestVmcp } from '../../helpers/vmcp/vmcp.ts'

const basic = (username: string, password: string) =>
  `Basic ${Buffer.from(`${username}:${password}`, 'utf8').toString('base64')}`

/** Signs one request; `secrets` are the variables of the pod. */
async function sign(block: StrategyConfig['basicAuth'], secrets: Record<string, string | undefined> = {}) {
  const outgoing = makeOutgoing({ secret: (name) => secrets[name] })
  t.teardown(() => outgoing.close())
  const strategy = outgoing.strategy({ type: 'basic_auth', basicAuth: block })
  return async () => {
    const request = testRequest({ headers: { Authorization: 'Bearer of-the-client' } })
    await strategy.apply(request, undefined)
    return request.headers
  }
}

t.test('credentials: the examples of RFC 7617, in UTF-8 and composed form', async (t) => {
  const rows = [
    ['Aladdin', 'open sesame', 'Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=='],
    ['test', '123\u00a3', 'Basic dGVzdDoxMjPCow=='],
    // e and a combining acute accent are sent as the single character é.
    ['e\u0301', 'a:b', basic('\u00e9', 'a:b')],
  ] as const
  for (const [username, password, authorization] of rows) {
    const send = await sign({ username, password })
    t.strictSame(await send(), { authorization }, 'instead of the previous value')
  }
})

t.test('rotation: variables are read for each request, and unusable values fail closed', async (t) => {
  const secrets: Record<string, string | undefined> = { U: 'gateway', P: 'one' }
  const send = await sign({ usernameEnv: 'U', passwordEnv: 'P' }, secrets)
  t.equal((await send())['authorization'], basic('gateway', 'one'))
  secrets['P'] = 'two'
  t.equal((await send())['authorization'], basic('gateway', 'two'))
  for (const broken of [undefined, '', 'two\n']) {
    secrets['P'] = broken
    await t.rejects(send(), { code: 'BACKEND_AUTH_FAILED' })
  }
  secrets['P'] = 'two'
  secrets['U'] = 'gate:way'
  await t.rejects(send(), { code: 'BACKEND_AUTH_FAILED' })
})

t.test('settings: every error names its field and shows no secret', async (t) => {
  const secrets: Record<string, string> = { COLON: 'gate:way', NEWLINE: 'pa55word\n', TAB: 'pa\t55word' }
  const outgoing = makeOutgoing({ secret: (name) => secrets[name] })
  t.teardown(() => outgoing.close())
  const rows: readonly [StrategyConfig['basicAuth'], RegExp][] = [
    [undefined, /basicAuth: is required/],
    [{ password: 'p' }, /basicAuth\.username: set username or usernameEnv/],
    [{ username: 'u' }, /basicAuth\.password: set password or passwordEnv/],
    [{ username: 'u', usernameEnv: 'U', password: 'p' }, /basicAuth\.username: excludes usernameEnv/],
    [{ username: 'u', passwordEnv: 'GONE' }, /passwordEnv: the variable GONE is not set or empty/],
    [{ usernameEnv: 'COLON', password: 'p' }, /basicAuth\.username: must not contain a colon/],
    [{ username: 'u', passwordEnv: 'NEWLINE' }, /basicAuth\.password: must not end with a line break/],
    [{ username: 'u', passwordEnv: 'TAB' }, /basicAuth\.password: must not contain control characters/],
  ]
  for (const [basicAuth, expected] of rows) {
    const found = outgoing.problems({ type: 'basic_auth', basicAuth }).join('\n')
    t.match(found, expected)
    t.notMatch(found, /gate:way|pa55word|55word/)
  }
})

t.test('manifests and files: invalid input is rejected with its field and rule', async (t) => {
  const passwordSecretRef = { name: 'legacy', key: 'password' }
  const manifest = (basicAuth: unknown, type = 'basicAuth') => ({
    apiVersion: 'gatehouse.dev/v1beta1',
    kind: 'MCPExternalAuthConfig',
    metadata: { name: 'legacy', namespace: 'team' },
    spec: { type, ...(basicAuth !== undefined && { basicAuth }) },
  })
  const refused = (doc: unknown) => formatViolations(validateResource(doc).violations)
  const usernameSecretRef = { name: 'legacy', key: 'username' }
  t.equal(refused(manifest({ username: 'gateway', passwordSecretRef })), '')
  t.equal(refused(manifest({ usernameSecretRef, passwordSecretRef })), '')
  const rows: readonly [unknown, RegExp][] = [
    [manifest(undefined), /^spec\.basicAuth: basicAuth must be set exactly when type is basicAuth/],
    [manifest({ username: 'u', passwordSecretRef }, 'unauthenticated'), /must be set exactly when type is/],
    [manifest({ username: 'u' }), /^spec\.basicAuth\.passwordSecretRef: is required/],
    [manifest({ passwordSecretRef }), /exactly one of username and usernameSecretRef must be set/],
    [manifest({ username: 'u', usernameSecretRef, passwordSecretRef }), /exactly one of username and/],
    [manifest({ username: 'a:b', passwordSecretRef }), /^spec\.basicAuth\.username: .*without colons/],
    [manifest({ username: 'a\n', passwordSecretRef }), /^spec\.basicAuth\.username: .*control characters/],
    [manifest({ username: 'u', password: 'p', passwordSecretRef }), /^spec\.basicAuth\.password: /],
  ]
  for (const [doc, expected] of rows) t.match(refused(doc), expected)
  const file = (basicAuth: unknown) =>
    formatViolations(
      validateRuntime('proxy', {
        name: 'demo',
        targetUri: 'https://legacy.example.com/mcp',
        outgoingAuth: { type: 'basic_auth', basicAuth },
      }).violations,
    )
  t.equal(file({ username: 'u', passwordEnv: 'P' }), '')
  t.match(file({ username: 'u' }), /exactly one of password and passwordEnv must be set/)
  t.match(file({ passwordEnv: 'P' }), /exactly one of username and usernameEnv must be set/)
})

const password = 'k\u00fchl-und-geheim'
const env: Record<string, string> = { NAME: 'gateway', PASSWORD: password }
const settings = { type: 'basic_auth', basicAuth: { usernameEnv: 'NAME', passwordEnv: 'PASSWORD' } }

/** A backend that requires the credentials, and the gateway's log output. */
async function guarded() {
  const lines: string[] = []
  const backend = await startRawBackend({
    responses: { 'tools/call': () => '{"content":[{"type":"text","text":"welcome"}]}' },
    before: (req: IncomingMessage, res: ServerResponse) => {
      if (req.headers.authorization === basic('gateway', password)) return false
      res.writeHead(401, { 'www-authenticate': 'Basic realm="legacy", charset="UTF-8"' }).end()
      return true
    },
  })
  const log = makeLog({ level: 'debug', destination: { write: (line) => void lines.push(line) } })
  const clean = () => {
    const written = lines.join('')
    return ![password, basic('gateway', password).slice(6)].some((secret) => written.includes(secret))
  }
  return { backend, log, lines, clean }
}

t.test(
  'virtual server: clients of both eras reach the backend, and no log contains the password',
  async (t) => {
    const { backend, log, lines, clean } = await guarded()
    const vmcp = await startTestVmcp(
      { legacy: backend.url },
      { aggregation: bareNames('legacy'), outgoingAuth: { source: 'inline', default: settings } },
      { env, log },
    )
    t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
    const session = await openSession(vmcp.url, { headers: { authorization: 'Bearer of-the-client' } })
    t.match((await session.request('tools/call', { name: 'echo' })).text, 'welcome')
    t.match((await stateless(vmcp.url, 'tools/call', { name: 'echo' })).text, 'welcome')
    t.ok(lines.length > 0, 'something was logged')
    t.ok(clean())
  },
)

t.test('proxy: requests carry the credentials, and no log contains the password', async (t) => {
  const { backend, log, lines, clean } = await guarded()
  const path = join(mkdtempSync(join(tmpdir(), 'basic-auth-')), 'proxy.yaml')
  writeFileSync(path, stringify({ name: 'legacy', targetUri: backend.url, outgoingAuth: settings }))
  const config = resolveProxyFile('legacy', loadProxyFile(path), { host: '127.0.0.1', port: '0' }, env)
  const proxy = await runProxy(config, { log, notify() {}, secret: (name) => env[name] })
  t.teardown(() => Promise.all([proxy.close({ graceMs: 0 }), backend.close()]))
  await proxy.ready
  const session = await openSession(`${proxy.url}/mcp`)
  t.match((await session.request('tools/call', { name: 'echo' })).text, 'welcome')
  t.ok(lines.length > 0, 'something was logged')
  t.ok(clean())
})
