/** A catalogue with authentication: tokens, policies, equal responses for denied and unknown names, rate limit. */
import t from 'tap'
import { startTokenIssuer } from '../../helpers/authserver/token-issuer.ts'
import { makeAccess } from '../../../runtime/catalogue/access.ts'
import { localCaller } from '../../../runtime/incoming/identity.ts'
import { silentLog } from '../../../runtime/net/index.ts'
import { makeMemoryStore } from '../../../runtime/store/index.ts'
import {
  catalogueConfig,
  namesIn,
  privateServer,
  publicServer,
  startTestCatalogue,
} from '../../helpers/registry/catalogue.ts'

const issuer = await startTokenIssuer()
t.teardown(() => issuer.close())
const bearer = async (subject: string, claims: Record<string, unknown> = {}) => ({
  authorization: `Bearer ${await issuer.token(subject, claims)}`,
})
const both = [publicServer.name, privateServer.name]
const policies = [
  `permit(principal, action == Action::"read_resource", resource == Resource::"${publicServer.name}");`,
  `permit(principal in ServiceGroup::"team", action == Action::"read_resource", resource == Resource::"${privateServer.name}");`,
]
const withPolicies = {
  incomingAuth: {
    ...issuer.incomingAuth,
    authz: { type: 'cedar', policies, groupClaimName: 'groups' },
  },
}

await t.test(
  'without a valid token, the catalogue reveals nothing and requests a bearer token',
  async (t) => {
    const { url } = await startTestCatalogue(t, { incomingAuth: issuer.incomingAuth })
    const wrong = { authorization: 'Bearer x.y.z' }
    for (const path of [
      '/v0.1/servers',
      `/v0.1/servers/${encodeURIComponent(both[0] ?? '')}/versions`,
      '/other',
    ])
      for (const headers of [{}, wrong]) {
        const response = await fetch(url + path, { headers })
        t.equal(response.status, 401, path)
        t.match(response.headers.get('www-authenticate'), /^Bearer/)
        t.equal(response.headers.get('access-control-allow-origin'), null)
        t.notMatch(await response.text(), /com\.example/)
      }
  },
)

await t.test('without policies, every authenticated caller sees every server', async (t) => {
  const { url } = await startTestCatalogue(t, { incomingAuth: issuer.incomingAuth })
  t.strictSame(await namesIn(url, '', await bearer('alice')), both)
  const response = await fetch(`${url}/v0.1/servers`, { headers: await bearer('alice') })
  t.match(Object.fromEntries(response.headers), {
    'cache-control': 'private, max-age=300',
    vary: 'Authorization',
  })
  t.equal(response.headers.get('access-control-allow-origin'), null)
})

await t.test('policies decide which servers a caller sees', async (t) => {
  const { url } = await startTestCatalogue(t, withPolicies)
  const alice = await bearer('alice', { groups: ['team'] })
  const bob = await bearer('bob')
  t.strictSame(await namesIn(url, '', alice), both)
  t.strictSame(await namesIn(url, '', bob), [publicServer.name])
  t.strictSame(await namesIn(url, '?search=team', bob), [])
  const path = `/v0.1/servers/${encodeURIComponent(privateServer.name)}/versions`
  t.equal((await fetch(`${url}${path}/latest`, { headers: alice })).status, 200)
  const answer = async (own: string) => {
    const response = await fetch(url + own, { headers: bob })
    const { date: _, ...headers } = Object.fromEntries(response.headers)
    return { status: response.status, headers, body: await response.text() }
  }
  const unknown = await answer(`/v0.1/servers/${encodeURIComponent('com.example/none')}/versions/latest`)
  t.equal(unknown.status, 404)
  for (const denied of [path, `${path}/latest`, `${path}/${privateServer.version}`])
    t.strictSame(await answer(denied), unknown, denied)
})

await t.test('pages count only the servers that the caller may see', async (t) => {
  const servers = Array.from({ length: 100 }, (_, index) => ({
    ...privateServer,
    name: `com.example/${String(index).padStart(3, '0')}`,
  }))
  const even = servers.filter((_, index) => index % 2 === 0).map(({ name }) => name)
  const list = even.map((name) => `Resource::"${name}"`).join(', ')
  const own = [
    `permit(principal, action == Action::"read_resource", resource) when { [${list}].contains(resource) };`,
  ]
  const { url } = await startTestCatalogue(t, {
    servers,
    incomingAuth: { ...issuer.incomingAuth, authz: { type: 'cedar', policies: own } },
  })
  const bob = await bearer('bob')
  t.strictSame(await namesIn(url, '?limit=30', bob), even.slice(0, 30))
  const response = await fetch(`${url}/v0.1/servers?limit=100`, { headers: bob })
  t.match(await response.json(), { metadata: { count: 50, nextCursor: undefined } })
})

await t.test(
  'a change of the servers keeps the issuer’s keys, and a change of the policies takes effect',
  async (t) => {
    const own = await startTokenIssuer()
    const auth = { ...own.incomingAuth, authz: { type: 'cedar', policies } }
    const headers = { authorization: `Bearer ${await own.token('bob')}` }
    const catalogue = await startTestCatalogue(t, { incomingAuth: auth })
    t.strictSame(await namesIn(catalogue.url, '', headers), [publicServer.name])
    const forbid = { type: 'cedar', policies: ['forbid(principal, action, resource);'] }
    catalogue.reload(catalogueConfig({ incomingAuth: { ...own.incomingAuth, authz: forbid } }))
    t.strictSame(await namesIn(catalogue.url, '', headers), [])
    catalogue.reload(catalogueConfig({ incomingAuth: auth }))
    t.strictSame(await namesIn(catalogue.url, '', headers), [publicServer.name])
    await own.close()
    catalogue.reload(
      catalogueConfig({ incomingAuth: auth, servers: [{ ...publicServer, version: '1.0.4' }] }),
    )
    t.strictSame(await namesIn(catalogue.url, '?version=1.0.4', headers), [publicServer.name])
  },
)

await t.test('many callers together do not make turns of the event loop long', async (t) => {
  const servers = Array.from({ length: 40 }, (_, index) => ({
    ...privateServer,
    name: `com.example/${index}`,
  }))
  const own = servers.map(
    ({ name }) =>
      `permit(principal, action == Action::"read_resource", resource == Resource::"${name}") when { context.claim_sub != "x" };`,
  )
  const config = catalogueConfig({
    servers,
    incomingAuth: { type: 'local', authz: { type: 'cedar', policies: own } },
  })
  const access = makeAccess(config, { env: {}, log: silentLog, proofs: makeMemoryStore({}) })
  const callers = Array.from({ length: 30 }, (_, index) => {
    const subject = `caller${index}`
    return { ...localCaller(subject), subject, claims: { sub: subject } }
  })
  // The processing time of each turn. The clock would also count the time of other processes.
  const turns: number[] = []
  let last = process.cpuUsage()
  function countTurn(): void {
    const { user } = process.cpuUsage(last)
    last = process.cpuUsage()
    turns.push(user)
  }
  const timer = setInterval(countTurn, 1)
  const lists = await Promise.all(callers.map((caller) => access.visible(caller)))
  clearInterval(timer)
  countTurn()
  const total = turns.reduce((sum, turn) => sum + turn, 0)
  t.strictSame(new Set(lists.map(({ length }) => length)), new Set([40]))
  t.ok(Math.max(...turns) < total / 4, `the longest turn took ${Math.max(...turns)} of ${total} µs`)
})

await t.test('one caller’s requests are limited, and other callers are unaffected', async (t) => {
  const { url } = await startTestCatalogue(t, { incomingAuth: issuer.incomingAuth })
  const alice = await bearer('alice')
  let limited: Response | undefined
  for (let sent = 0; sent < 600 && !limited; sent += 50) {
    const responses = await Promise.all(
      Array.from({ length: 50 }, () => fetch(`${url}/v0.1/servers?limit=1`, { headers: alice })),
    )
    for (const response of responses) {
      await response.arrayBuffer()
      if (response.status === 429) limited = response
    }
  }
  t.match(limited?.headers.get('retry-after'), /^[1-9]\d*$/)
  t.equal((await fetch(`${url}/v0.1/servers`, { headers: await bearer('bob') })).status, 200)
})

await t.test('a page of another origin cannot read a catalogue on the loopback interface', async (t) => {
  const { url } = await startTestCatalogue(t, { incomingAuth: issuer.incomingAuth })
  const headers = { ...(await bearer('alice')), origin: 'https://page.example' }
  t.equal((await fetch(`${url}/v0.1/servers`, { headers })).status, 403)
})
