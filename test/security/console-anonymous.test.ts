/** The console without a login: only the local user who has the token gets access. */
import { request } from 'node:http'
import t from 'tap'
import { startTestConsole } from '../helpers/console/console.ts'

/** Sends a request with headers that fetch does not allow. */
function raw(url: string, headers: Record<string, string>): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const req = request(url, { headers }, (res) => {
      let text = ''
      res
        .on('data', (chunk) => (text += chunk))
        .on('end', () => resolve({ status: res.statusCode ?? 0, text }))
    })
    req.on('error', reject).end()
  })
}

t.test('the token, the host and a direct connection are all required', async (t) => {
  const console = await startTestConsole({})
  t.teardown(() => console.close())
  const me = `${console.url}api/v1/me`
  const { host } = new URL(console.url)
  const token = { 'x-gatehouse-launch': console.token, host }
  t.equal((await raw(me, token)).status, 200)
  t.equal((await raw(me, { host })).status, 401)
  t.equal((await raw(me, { ...token, 'x-gatehouse-launch': `${console.token}x` })).status, 401)
  t.equal((await raw(`${me}?launch=${console.token}`, { host })).status, 401, 'no token in the URL')
  for (const name of ['x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto', 'forwarded', 'x-real-ip'])
    t.equal((await raw(me, { ...token, [name]: '127.0.0.1' })).status, 403, name)
  t.equal((await raw(me, { ...token, host: 'evil.example' })).status, 403, 'DNS rebinding')
  t.equal(
    (await raw(console.url, { host: `evil.example:${new URL(console.url).port}` })).status,
    403,
    'pages too',
  )
  t.equal((await raw(me, { ...token, host: '127.0.0.1:1' })).status, 403, 'another port')
  t.equal((await raw(me, { ...token, origin: 'https://evil.example' })).status, 403)
  t.equal((await raw(me, { ...token, 'sec-fetch-site': 'cross-site' })).status, 403)
})

t.test('every response has the headers that protect against other pages', async (t) => {
  const console = await startTestConsole({})
  t.teardown(() => console.close())
  for (const path of ['', 'api/v1/me', 'nothing.js', 'api/v1/nothing']) {
    const { headers } = await fetch(console.url + path)
    t.match(headers.get('content-security-policy'), "frame-ancestors 'none'", path)
    t.equal(headers.get('cross-origin-resource-policy'), 'same-origin')
    t.equal(headers.get('x-content-type-options'), 'nosniff')
    t.equal(headers.get('referrer-policy'), 'no-referrer')
    t.notOk(headers.get('access-control-allow-origin'))
  }
})
