/** Pages of the login's local server: the common layout, no repeated input, and no caching. */
import { createHash } from 'node:crypto'
import t from 'tap'
import { silentLog } from '../../../runtime/net/index.ts'
import { openCallback } from '../../../runtime/oauth/index.ts'

await t.test('login pages: the policy allows only the style sheet, by its hash', async (t) => {
  const callback = await openCallback(0, silentLog)
  t.teardown(() => callback.close())
  const origin = `http://localhost:${callback.port}`
  for (const [path, status, title] of [
    ['/', 200, 'Waiting for a login'],
    ['/callback?state=%3Cscript%3E&error_description=%3Cimg%3E', 400, 'This link is not valid'],
  ] as const) {
    const response = await fetch(origin + path)
    const text = await response.text()
    t.equal(response.status, status)
    t.match(text, `<h1>${title}</h1>`)
    t.notMatch(text, /<script|<img|%3C/)
    const style = /<style>([\s\S]*)<\/style>/.exec(text)?.[1] ?? ''
    const hash = createHash('sha256').update(style).digest('base64')
    t.equal(
      response.headers.get('content-security-policy'),
      `default-src 'none'; style-src 'sha256-${hash}'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'`,
    )
    t.match(Object.fromEntries(response.headers), {
      'cache-control': 'no-store',
      'content-type': 'text/html; charset=utf-8',
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
    })
  }
})
