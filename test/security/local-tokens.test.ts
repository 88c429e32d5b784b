/** A listener that requires local tokens: the tokens that it accepts, their paths, and its rejections. */
import { once } from 'node:events'
import { request } from 'node:http'
import t from 'tap'
import { readLocalTokens } from '../../runtime/config/index.ts'
import { listen, silentLog, tokenDigest } from '../../runtime/net/index.ts'

const digests = { cursor: tokenDigest('token-1'), vscode: tokenDigest('token-2') }

t.test('local tokens: only requests with an accepted token reach the handler', async (t) => {
  const listener = await listen({
    host: '127.0.0.1',
    port: 0,
    log: silentLog,
    localTokens: { digests, openPaths: ['/sign-in/'] },
    handler: (_req, res) => res.end('handled'),
  })
  t.teardown(() => listener.close({ graceMs: 0 }))
  const get = (authorization: string | undefined, path = '/mcp') =>
    fetch(`${listener.url}${path}`, { headers: authorization === undefined ? {} : { authorization } })
  for (const accepted of ['Bearer token-1', 'Bearer token-2', 'bearer  token-2'])
    t.equal((await get(accepted)).status, 200, accepted)
  for (const rejected of [
    undefined,
    '',
    'token-1',
    'Basic token-1',
    'Bearer',
    'Bearer token-3',
    'Bearer token-1 token-2',
    'Bearer token-1, Bearer token-2',
    `Bearer ${digests.cursor}`,
  ]) {
    const response = await get(rejected)
    t.equal(response.status, 401, rejected ?? 'none')
    t.equal(response.headers.get('www-authenticate'), 'Bearer realm="gatehouse"')
    t.notMatch(await response.text(), /handled|token-/)
  }
  t.equal((await get(undefined, '/sign-in/linear')).status, 200, 'an open path')
  for (const path of ['/sign-in', '/x/sign-in/', '/?/sign-in/', '/health', '/status'])
    t.equal((await get(undefined, path)).status, 401, path)
})

t.test('local tokens: an upgrade requires a token as well', async (t) => {
  const listener = await listen({
    host: '127.0.0.1',
    port: 0,
    log: silentLog,
    localTokens: { digests },
    handler: (_req, res) => res.end(),
    onUpgrade: (_req, res) => res.writeHead(418).end(),
  })
  t.teardown(() => listener.close({ graceMs: 0 }))
  const upgrade = async (headers: Readonly<Record<string, string>>) => {
    const sent = request(listener.url, {
      headers: { connection: 'Upgrade', upgrade: 'websocket', ...headers },
      agent: false,
    }).end()
    const [response] = await once(sent, 'response')
    response.resume()
    return response.statusCode
  }
  t.equal(await upgrade({ authorization: 'Bearer token-1' }), 418)
  t.equal(await upgrade({}), 401)
})

t.test('local tokens: without accepted tokens, every request is rejected', async (t) => {
  const listener = await listen({
    host: '127.0.0.1',
    port: 0,
    log: silentLog,
    localTokens: { digests: {} },
    handler: (_req, res) => res.end(),
  })
  t.teardown(() => listener.close({ graceMs: 0 }))
  t.equal((await fetch(listener.url, { headers: { authorization: 'Bearer x' } })).status, 401)
})

t.test(
  'local tokens: an invalid variable is an error, so that no listener opens without protection',
  async (t) => {
    t.equal(readLocalTokens({}), undefined)
    t.strictSame(readLocalTokens({ GATEHOUSE_LOCAL_TOKENS: JSON.stringify(digests) }), digests)
    for (const value of ['', '{', '[]', 'null', '{"a":1}', '{"a":"abc"}', `{"a":"${'A'.repeat(64)}"}`])
      t.throws(() => readLocalTokens({ GATEHOUSE_LOCAL_TOKENS: value }), { code: 'INVALID_CONFIG' }, value)
  },
)
