/** Pages of apps that wait for their frames. */
import type { ServerResponse } from 'node:http'
import t from 'tap'
import type { ApiRequest } from '../../../runtime/console/http/api-route.ts'
import { AppPages } from '../../../runtime/console/tries/app-pages.ts'
import { type Exchange, makeCaller } from '../../../runtime/net/index.ts'

const contents = [{ uri: 'ui://a/b', mimeType: 'text/html;profile=mcp-app', text: '<p>page</p>' }]

function start() {
  let now = 0
  const json = Buffer.from(JSON.stringify({ contents }))
  const pages = new AppPages({ readPage: async () => ({ kind: 'result', json }) }, () => now)
  const open = async (subject: string): Promise<string> => {
    const caller = makeCaller({ issuer: 'https://idp.example.com', subject, claims: {} })
    const request = { visitor: { caller }, body: { name: 'show' } } as Partial<ApiRequest>
    const { path } = await pages.open(request as ApiRequest)
    return path.slice('apps/'.length)
  }
  const isServed = (token: string): boolean => {
    const res = { removeHeader() {}, setHeader() {}, writeHead: () => res, end() {} }
    const exchange = { req: { method: 'GET', headers: { host: 'console.example.com' } }, res }
    try {
      pages.send(exchange as unknown as Exchange & { res: ServerResponse }, token)
      return true
    } catch {
      return false
    }
  }
  return { open, isServed, wait: (ms: number) => (now += ms) }
}

t.test('app pages: a visitor does not replace the page of another visitor', async (t) => {
  const { open, isServed } = start()
  const ada = await open('ada')
  const eve: string[] = []
  for (let i = 0; i < 40; i++) eve.push(await open('eve'))
  t.ok(isServed(ada))
  t.same(eve.map(isServed), [...Array.from({ length: 36 }, () => false), true, true, true, true])
})

t.test('app pages: at most 16 pages wait, for a minute', async (t) => {
  const { open, isServed, wait } = start()
  const tokens: string[] = []
  for (let i = 0; i < 17; i++) tokens.push(await open(`user-${i}`))
  t.equal(isServed(tokens[0] ?? ''), false)
  t.equal(isServed(tokens[1] ?? ''), true)
  t.equal(isServed(tokens[1] ?? ''), false, 'once')
  wait(60_001)
  t.equal(isServed(tokens[2] ?? ''), false)
})
