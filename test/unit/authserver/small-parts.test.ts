/** Codec, caller keys, HTML, form parsing and user ids: small parts that security decisions depend on. */
import t from 'tap'
import { readResources } from '../../../runtime/authserver/endpoints/authorize.ts'
import type { AuthServerContext } from '../../../runtime/authserver/login/context.ts'
import { html } from '../../../runtime/net/index.ts'
import { parseBasicCredentials, Parameters } from '../../../runtime/authserver/endpoints/form.ts'
import { makeMemoryStore } from '../../../runtime/store/index.ts'
import {
  callerKey,
  limits,
  loginMs,
  takePermission,
  unusedClientMs,
} from '../../../runtime/authserver/storage/limits.ts'
import { count, decode, list, maybe, oneOf, record, text } from '../../../runtime/authserver/model/codec.ts'
import { makeUserId, userOf } from '../../../runtime/authserver/upstream/user.ts'
import { issuerOf } from '../../../runtime/authserver/upstream/upstream-registration.ts'
import {
  compoundKey,
  assertionClientId,
  isMachineToken,
  machineSubject,
} from '../../../runtime/authserver/model/identifiers.ts'
import { buildClientRedirect } from '../../../runtime/authserver/model/urls.ts'

t.test('codec: a record is read completely or not at all', async (t) => {
  const shape = record({ a: text, n: maybe(count), l: list(text), k: oneOf('x', 'y') })
  t.same(decode(shape, '{"a":"1","l":["2"],"k":"x","more":true}'), { a: '1', l: ['2'], k: 'x' })
  for (const json of [
    '',
    '{',
    'null',
    '[]',
    '7',
    '{"a":1,"l":[],"k":"x"}',
    '{"a":"","l":[1],"k":"x"}',
    '{"a":"","l":[],"k":"z"}',
    '{"a":"","l":[],"k":"x","n":"1"}',
    '{"a":"","l":[],"k":"x","n":null}',
  ]) {
    t.equal(decode(shape, json), undefined, json)
  }
  t.equal(decode(shape, undefined), undefined)
})

t.test('keys: different parts never make the same key', async (t) => {
  t.not(compoundKey('a', 'bc'), compoundKey('ab', 'c'))
  t.not(compoundKey('a:1', 'b'), compoundKey('a', '1:b'))
  t.not(compoundKey('', 'a'), compoundKey('a', ''))
})

t.test('limits: an IPv6 caller is its network, and a mapped IPv4 caller its address', async (t) => {
  t.equal(callerKey('192.0.2.7'), '192.0.2.7')
  t.equal(callerKey('::ffff:192.0.2.7'), '192.0.2.7')
  t.equal(callerKey('2001:db8:1:2:3:4:5:6'), callerKey('2001:db8:1:2::9'))
  t.not(callerKey('2001:db8:1:2::1'), callerKey('2001:db8:1:3::1'))
  t.equal(callerKey('fe80::1%eth0'), callerKey('fe80::2'))
})

t.test("html: values are escaped everywhere, and the server's own markup is not", async (t) => {
  const evil = `"><script>'&`
  const inner = html`<b>${evil}</b>`
  t.equal(
    html`<a title="${evil}">${[inner, inner]}${undefined}</a>`.markup,
    `<a title="&quot;&gt;&lt;script&gt;&#39;&amp;">${'<b>&quot;&gt;&lt;script&gt;&#39;&amp;</b>'.repeat(2)}</a>`,
  )
})

t.test('redirect: parameters are merged into the query, and the issuer is always added', async (t) => {
  t.equal(
    buildClientRedirect('https://a.example/cb', 'https://i', { code: 'c d', state: undefined }),
    'https://a.example/cb?code=c+d&iss=https%3A%2F%2Fi',
  )
  t.equal(
    buildClientRedirect('https://a.example/cb?x=1', 'https://i', {}),
    'https://a.example/cb?x=1&iss=https%3A%2F%2Fi',
  )
  t.equal(
    buildClientRedirect('https://a.example/cb?', 'https://i', {}),
    'https://a.example/cb?iss=https%3A%2F%2Fi',
  )
  t.equal(
    buildClientRedirect('com.example.app:/cb', 'https://i', {}),
    'com.example.app:/cb?iss=https%3A%2F%2Fi',
  )
})

t.test('form: empty values are absent, and repeated parameters are reported', async (t) => {
  const parameters = new Parameters(new URLSearchParams('a=&b=1&resource=x&resource=y'))
  t.equal(parameters.get('a'), undefined)
  t.equal(parameters.repeated(), undefined)
  t.same(parameters.all('resource'), ['x', 'y'])
  t.equal(new Parameters(new URLSearchParams('b=1&b=1')).repeated(), 'b')
  t.throws(() => parameters.require('a'), {
    error: 'invalid_request',
    message: 'the a parameter is required',
  })
})

t.test('form: Basic credentials are form-decoded', async (t) => {
  const basic = (pair: string): string => `Basic ${Buffer.from(pair).toString('base64')}`
  t.same(parseBasicCredentials(basic('a%3Ab:c+d%25')), { id: 'a:b', secret: 'c d%' })
  t.same(parseBasicCredentials(basic('a:b:c')), { id: 'a', secret: 'b:c' })
  t.same(parseBasicCredentials(basic('a:')), { id: 'a', secret: '' })
  for (const bad of ['Basic', 'Basic !!', basic('nocolon'), basic(':x'), basic('%zz:x'), 'Bearer x'])
    t.equal(parseBasicCredentials(bad), undefined, bad)
})

t.test('user: the id is derived from issuer, provider and subject, and is a UUID', async (t) => {
  const id = makeUserId('https://i', 'corp', 'alice')
  t.equal(id, makeUserId('https://i', 'corp', 'alice'))
  t.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  for (const other of [
    makeUserId('https://j', 'corp', 'alice'),
    makeUserId('https://i', 'hub', 'alice'),
    makeUserId('https://i', 'corp', 'bob'),
    makeUserId('https://i', 'corpa', 'lice'),
  ]) {
    t.not(other, id)
  }
})

t.test('registration: the issuer of a discovery document, in both forms', async (t) => {
  const cases: readonly (readonly [string, string])[] = [
    ['https://i.example/.well-known/openid-configuration', 'https://i.example'],
    ['https://i.example/.well-known/oauth-authorization-server', 'https://i.example'],
    ['https://i.example/.well-known/oauth-authorization-server/a/b', 'https://i.example/a/b'],
    ['https://i.example/a/.well-known/openid-configuration', 'https://i.example/a'],
    ['https://i.example/custom/metadata.json', 'https://i.example'],
  ]
  for (const [url, issuer] of cases) t.equal(issuerOf(url), issuer, url)
})

t.test('limits: a single caller cannot use up the total limit at any rate', async (t) => {
  for (const name of ['authorize', 'register', 'document'] as const) {
    let now = 0
    const store = makeMemoryStore({ now: () => now })
    const { refillMs, capacity } = limits[name].total[0]
    let taken = 0
    for (; now < refillMs; now += refillMs / 200) {
      while ((await takePermission(store, name, { caller: '198.51.100.7' })) === 0) taken++
    }
    t.ok(taken > 0 && taken <= capacity * 0.6, `${name}: ${taken} of ${capacity}`)
    t.equal(await takePermission(store, name, { caller: '198.51.100.8' }), 0, 'a neighbour still gets his')
  }
})

t.test('limits: a rejected caller leaves no entry in the store', async (t) => {
  const store = makeMemoryStore({ now: () => 0, maxEntries: 3 })
  for (let n = 0; n < 10; n++)
    await takePermission(store, 'document', { caller: '198.51.100.7', host: 'a.example' })
  t.not(await takePermission(store, 'document', { caller: '198.51.100.8', host: 'a.example' }), 0)
  t.not(await takePermission(store, 'document', { caller: '198.51.100.9', host: 'a.example' }), 0)
})

t.test(
  'limits: untrusted clients can start at most the documented number per lifetime, including a burst',
  async (t) => {
    for (const [name, lifetimeMs, bound] of [
      ['authorize', loginMs, 10_000],
      ['register', unusedClientMs, 5_000],
    ] as const) {
      let now = 0
      const store = makeMemoryStore({ now: () => now })
      let taken = 0
      for (; now < lifetimeMs; now += lifetimeMs / 200) {
        // Each call comes from another network.
        while (
          (await takePermission(store, name, {
            caller: `10.${taken >> 14}.${(taken >> 7) & 127}.${taken & 127}`,
          })) === 0
        )
          taken++
      }
      t.ok(taken > bound * 0.9 && taken <= bound, `${name}: ${taken} of ${bound}`)
    }
  },
)

t.test('resources: the same resource may be repeated, up to a limit', async (t) => {
  const resource = 'https://mcp.example/mcp'
  const context = { config: { allowedAudiences: [resource] } } as unknown as AuthServerContext
  const query = (count: number) =>
    new Parameters(new URLSearchParams('&resource=HTTPS://mcp.EXAMPLE/mcp'.repeat(count)))
  t.strictSame(readResources(query(100), context), [resource])
  t.throws(() => readResources(query(101), context), { message: /at most 100 resources/ })
})

t.test('user ids: no user has the subject of a declared client, whatever a provider sends', async (t) => {
  for (const subject of ['client:job', 'job', '', 'client:', machineSubject(machineSubject('job'))]) {
    for (const provider of ['corp', 'client', 'client:']) {
      const user = userOf('https://as.example', { provider, identity: { subject, synthesized: false } }, 0)
      t.equal(isMachineToken({ sub: user.userId, client_id: 'app' }), false)
      t.match(user.userId, /^[0-9a-f]{8}-[0-9a-f-]{27}$/)
    }
  }
  t.equal(isMachineToken({ sub: machineSubject('job'), client_id: 'job' }), true)
  const clientId = assertionClientId('https://ci.example', 'subject', 'job')
  t.equal(isMachineToken({ sub: 'https://ci.example#job', client_id: clientId }), true)
})
