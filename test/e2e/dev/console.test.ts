/** Opens the console of `gatehouse dev` with the address from the terminal. */
import t from 'tap'
import { group, server, startDev, virtualServer } from '../../helpers/dev-rig.ts'

const stdio = {
  transport: 'stdio',
  podTemplateSpec: { spec: { containers: [{ name: 'mcp', command: ['x'] }] } },
}
const echo = server('echo', 'node test/helpers/clients/argv-server.ts', stdio)

t.test('the printed address opens the API only with its fragment', async (t) => {
  const { dev } = await startDev(t, [group(), echo, virtualServer()])
  const line = await dev.waitFor(/console at http:\/\/127\.0\.0\.1:\d+\/#launch=\S+/)
  const { origin, hash } = new URL(/http:\S+/.exec(String(line))?.[0] ?? '')
  const token = hash.replace('#launch=', '')
  const me = (headers: Record<string, string>) => fetch(`${origin}/api/v1/me`, { headers })
  const open = await me({ 'x-gatehouse-launch': token })
  t.equal(open.status, 200)
  t.match(await open.json(), {
    server: 'v',
    anonymous: true,
    roles: ['viewer', 'operator', 'auditor'],
  })
  t.equal((await me({})).status, 401)
  t.equal((await me({ 'x-gatehouse-launch': token, 'x-forwarded-for': '192.0.2.1' })).status, 403)
  t.equal((await me({ 'x-gatehouse-launch': token, origin: 'https://evil.example' })).status, 403)
  const page = await fetch(origin)
  t.match(page.headers.get('content-security-policy'), /default-src 'none'/)
})
