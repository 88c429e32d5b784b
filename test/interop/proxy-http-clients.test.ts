/** Third-party HTTP clients (node-fetch and Node's own fetch) get the same responses through the proxy as directly. */
import { gzipSync } from 'node:zlib'
import nodeFetch from 'node-fetch'
import t from 'tap'
import { startRig, startUpstream } from '../helpers/proxy/rig.ts'

const compressed = gzipSync('{"compressed":true}')

/** The interface that both clients share. */
type AnyFetch = (
  url: string,
  init?: { method?: string; body?: string; headers?: Record<string, string>; redirect?: 'manual' },
) => Promise<{
  status: number
  text(): Promise<string>
  headers: { get(name: string): string | null }
}>

const clients: Readonly<Record<string, AnyFetch>> = { 'node-fetch': nodeFetch, fetch }

for (const [name, client] of Object.entries(clients)) {
  t.test(`${name}: bodies, compression, redirects and errors arrive unchanged`, async (t) => {
    const upstream = await startUpstream((seen, res) => {
      if (seen.url === '/gzip') {
        res.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' }).end(compressed)
      } else if (seen.url === '/away') res.writeHead(302, { location: 'https://elsewhere.example/' }).end()
      else if (seen.url === '/failure') res.writeHead(418, { 'x-kind': 'teapot' }).end('short and stout')
      else res.writeHead(200, { 'content-type': 'text/plain' }).end(`${seen.method} ${seen.body}`)
    })
    t.teardown(() => upstream.close())
    const { url, close } = await startRig(upstream.url)
    t.teardown(close)
    const body = 'ünï'.repeat(10_000)
    t.equal(await (await client(`${url}/echo`, { method: 'POST', body })).text(), `POST ${body}`)
    t.equal(await (await client(`${url}/gzip`)).text(), '{"compressed":true}')
    const away = await client(`${url}/away`, { redirect: 'manual' })
    t.equal(away.status, 302)
    t.match(away.headers.get('location'), 'https://elsewhere.example/')
    const failure = await client(`${url}/failure`)
    t.equal(failure.status, 418)
    t.equal(failure.headers.get('x-kind'), 'teapot')
    t.equal(await failure.text(), 'short and stout')
  })
}
