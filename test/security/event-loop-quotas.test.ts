/**
 * Tokens with thousands of groups, where each group has a budget in every possible quota. No turn of the server's event
 * loop may be long; see watched.ts.
 */
import t from 'tap'
import { startTokenIssuer } from '../helpers/authserver/token-issuer.ts'
import { startRawBackend } from '../helpers/mcp/raw-backend.ts'
import { stateless } from '../helpers/mcp/wire.ts'
import { startWatched } from '../helpers/vmcp/watched.ts'

t.setTimeout(240_000)

t.test('event loop: groups of a token and their budgets block no other client', async (t) => {
  const issuer = await startTokenIssuer()
  const large = (characters: number) => `{"content":[{"type":"text","text":"${'x'.repeat(characters)}"}]}`
  const dense = (values: number) => `{"content":[],"structuredContent":{"a":[${'[],'.repeat(values)}1]}}`
  let result = '{"content":[]}'
  const backend = await startRawBackend({ responses: { 'tools/call': () => result } })
  t.teardown(() => Promise.all([backend.close(), issuer.close()]))
  const units = ['calls', 'resultBytes', 'cost'] as const
  const { url, row } = await startWatched(t, {
    incomingAuth: issuer.incomingAuth,
    quotas: Array.from({ length: 32 }, (_, i) => ({
      name: `q${i}`,
      per: 'group',
      window: 'month',
      unit: units[i % 3],
      limit: units[i % 3] === 'resultBytes' ? 1e12 : 1_000_000,
    })),
    costs: { raw: 1 },
    backends: [{ name: 'raw', url: backend.url, transport: 'streamable-http' }],
  })
  let tells = false
  const callWith = async (groups: number): Promise<number> => {
    const names = Array.from({ length: groups }, (_, i) => `group-${i}`)
    const headers = { authorization: `Bearer ${await issuer.token('ada', { groups: names })}` }
    const answer = await stateless(url, 'tools/call', { name: 'raw_echo', arguments: {} }, { headers })
    tells = answer.text.includes('gatehouse.dev/quota')
    return answer.status
  }
  await callWith(1)
  for (const groups of [256, 1_000])
    await row(`${groups} groups`, (size) => callWith(Math.floor(groups * size)), 200)
  // One call uses 80 % of this budget, so each later result reports the rest.
  result = '{"content":[],"_meta":{"gatehouse.dev/cost":800000}}'
  await callWith(1)
  for (const [what, text] of [
    ['large', large(30_000_000)],
    ['dense', dense(1_000_000)],
  ] as const) {
    result = text
    await row(`a ${what} result that says what is left`, () => callWith(1), 200)
    t.ok(tells)
  }
  await row('a token that is too long for its groups to be read', () => callWith(10_000), 401)
})
