/**
 * A public target cannot make the login call private addresses. Addresses that the operator configured may be private.
 */
import t from 'tap'
import { parseTarget } from '../../../runtime/config/proxy/target.ts'
import { makeLoginFetch } from '../../../runtime/outgoing/login/fetches.ts'
import { startLoopback } from '../../helpers/loopback.ts'

const inner = await startLoopback(() => ({ body: { reached: true } }))
t.teardown(() => inner.close())

function codes(error: unknown): string[] {
  const found: string[] = []
  for (let failure = error; failure instanceof Error; failure = failure.cause)
    if ('code' in failure) found.push(String(failure.code))
  return found
}

await t.test('login: URLs from a public target are checked, http and https, literal and named', async (t) => {
  const made = await makeLoginFetch({
    target: parseTarget('https://mcp.example.invalid'),
    typed: [undefined],
  })
  t.teardown(() => made.close())
  for (const url of [
    inner.url,
    `http://localhost:${inner.port}`,
    `https://127.0.0.1:${inner.port}`,
    `http://[::1]:${inner.port}`,
    'https://169.254.169.254/latest',
    'https://10.0.0.1',
  ]) {
    const failure: unknown = await made.fetch(url).catch((error: unknown) => error)
    t.ok(codes(failure).includes('ADDRESS_REFUSED'), url)
  }
  t.same(inner.seen, [])
})

await t.test(
  'login: configured addresses are reached, private or not, and no other private ones',
  async (t) => {
    const other = await startLoopback(() => ({ body: {} }))
    const made = await makeLoginFetch({
      target: parseTarget('https://mcp.example.invalid'),
      typed: [inner.url],
    })
    t.teardown(() => Promise.all([made.close(), other.close()]))
    t.same(await (await made.fetch(`${inner.url}/.well-known/x`)).json(), { reached: true })
    await t.rejects(made.fetch(other.url))
    t.same(other.seen, [])
  },
)

await t.test('login: a private target may have a private authorization server', async (t) => {
  const made = await makeLoginFetch({ target: parseTarget('http://127.0.0.1:1'), typed: [] })
  t.teardown(() => made.close())
  t.same(await (await made.fetch(inner.url)).json(), { reached: true })
})
