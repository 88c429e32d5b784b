/** Bodies of hook requests: limits per request and for all requests together, enforced while the bodies arrive. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import express, { type NextFunction, type Request, type Response } from 'express'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { JsonBounds, parseEmbeddedJson } from '../../../../hooks/base/json-bounds.ts'
import { type Body, requestBody } from '../../../../hooks/server/request-body.ts'
import { GatehouseError } from '../../../../schemas/index.ts'

const MEBIBYTE = 1024 * 1024

interface Options {
  readonly requests?: number
  readonly arriving?: number
  readonly bytesInFlight?: number
  readonly now?: () => number
  /** Awaited before the server responds. */
  readonly before?: () => Promise<unknown>
}

async function start(t: Test, { now = () => 0, before, ...more }: Options = {}) {
  const app = express()
  const limits = {
    bytes: MEBIBYTE,
    values: 1000,
    depth: 10,
    requests: 8,
    arriving: 8,
    bytesInFlight: 4 * MEBIBYTE,
    ...more,
  }
  app.post('/', requestBody(limits, now), async (request: Request, response: Response) => {
    const { bytes, size }: Body = request.body
    await before?.()
    response.type('json').send(Buffer.from(bytes.buffer, 0, size))
  })
  app.use((error: unknown, _request: Request, response: Response, _next: NextFunction) => {
    const known = error instanceof GatehouseError ? error : new GatehouseError('INTERNAL')
    response.status(known.status).set(known.headers).send(known.message)
  })
  const server = createServer(app).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => new Promise((resolve) => server.close(resolve)))
  const { port } = server.address() as AddressInfo
  const post = async (body: string | Buffer, headers: Record<string, string> = {}) => {
    const response = await fetch(`http://127.0.0.1:${port}`, { method: 'POST', body, headers })
    return { status: response.status, text: await response.text(), headers: response.headers }
  }
  /** Sends the head and some bytes, and waits until the server has read them; the request stays open. */
  const hold = async (bytes: number): Promise<Socket> => {
    const read = new Promise<void>((resolve) => {
      server.once('request', (request) => {
        let seen = 0
        request.on('data', (chunk: Buffer) => {
          seen += chunk.length
          if (seen >= bytes) resolve()
        })
      })
    })
    const socket = connect(port, '127.0.0.1')
    socket.write('POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n')
    socket.write(`${bytes.toString(16)}\r\n${'"'.padEnd(bytes, 'x')}\r\n`)
    await read
    return socket
  }
  return { post, hold, port }
}

t.test('body: JSON within its limits is accepted, whatever its content type', async (t) => {
  const { post } = await start(t)
  t.match(await post('{"a":[1,"é"]}', { 'content-type': 'text/plain' }), {
    status: 200,
    text: '{"a":[1,"é"]}',
  })
  t.match(await post(`"${'[{,:'.repeat(10_000)}\\"[["`), { status: 200 })
})

t.test('body: the response names the exceeded limit, and the connection is closed', async (t) => {
  const { post } = await start(t)
  for (const [body, status, text] of [
    [`"${'x'.repeat(MEBIBYTE)}"`, 413, 'the request body is larger than 1 MiB'],
    [`"${'x'.repeat(3 * MEBIBYTE)}"`, 413, 'the request body is larger than 1 MiB'],
    [`[${Array(600).fill('[]').join(',')}]`, 413, 'the request body contains more than 1000 JSON values'],
    [`${'['.repeat(11)}${']'.repeat(11)}`, 400, 'the request body is nested more than 10 levels deep'],
  ] as const) {
    const response = await post(body)
    t.match(response, { status, text })
    t.equal(response.headers.get('connection'), 'close')
  }
  t.match(await post('[1]'), { status: 200 })
})

t.test('body: compressed bodies are rejected', async (t) => {
  const { post } = await start(t)
  t.match(await post('[1]', { 'content-encoding': 'gzip' }), { status: 415 })
  t.match(await post('[1]', { 'content-encoding': 'identity' }), { status: 200 })
})

t.test('body: received bytes of all requests count together and are released afterwards', async (t) => {
  const { post, hold } = await start(t, { bytesInFlight: 2 * MEBIBYTE })
  const half = `"${'x'.repeat(MEBIBYTE / 2)}"`
  const held = [await hold(MEBIBYTE - 10), await hold(MEBIBYTE - 10)]
  const refused = await post(half)
  t.match(refused, { status: 429, text: 'too many concurrent request bodies; try again' })
  t.equal(refused.headers.get('retry-after'), '1')
  for (const socket of held) {
    socket.end('0\r\n\r\n')
    await once(socket.resume(), 'close')
  }
  for (let i = 0; i < 5; i++) t.match(await post(half), { status: 200 })
})

t.test('body: the number of concurrent requests is limited, and slow senders do not count', async (t) => {
  const answered = Promise.withResolvers<void>()
  const bothWait = Promise.withResolvers<void>()
  let waiting = 0
  const before = (): Promise<void> => {
    if (++waiting === 2) bothWait.resolve()
    return answered.promise
  }
  const { post, hold } = await start(t, { requests: 2, before })
  const slow = [await hold(10), await hold(10), await hold(10)]
  const first = [post('1'), post('2')]
  await bothWait.promise
  t.match(await post('3'), { status: 429 })
  answered.resolve()
  for (const response of await Promise.all(first)) t.match(response, { status: 200 })
  t.match(await post('4'), { status: 200 })
  for (const socket of slow) {
    socket.end('0\r\n\r\n')
    await once(socket.resume(), 'close')
  }
})

t.test(
  'body: a body that has been arriving for a long time is dropped in favor of new requests',
  async (t) => {
    let ms = 0
    const { post, hold } = await start(t, { bytesInFlight: 2 * MEBIBYTE, arriving: 3, now: () => ms })
    const half = `"${'x'.repeat(MEBIBYTE / 2)}"`
    const told = async (socket: Socket): Promise<string> => {
      let text = ''
      for await (const chunk of socket) text += String(chunk)
      return text
    }
    const held = [await hold(MEBIBYTE - 10), await hold(MEBIBYTE - 10)]
    const responses = held.map(told)
    ms = 999
    t.match(await post(half), { status: 429 }, 'not at once')
    ms = 1_000
    t.match(await post(half), { status: 200 })
    t.match(await responses[0], /^HTTP\/1\.1 429 [^]*connection: close/i)
    const others = [await hold(10), await hold(10)]
    t.match(await post('1'), { status: 200 }, 'one more request can always arrive')
    t.match(await responses[1], /^HTTP\/1\.1 429 /)
    for (const socket of others) socket.destroy()
  },
)

t.test('bounds: count and depth match the JSON, however it is split', async () => {
  const weigh = (value: unknown): { values: number; depth: number } => {
    if (typeof value !== 'object' || value === null) return { values: 0, depth: 0 }
    const inner = Object.values(value).map(weigh)
    const own = Array.isArray(value) ? inner.length : 2 * inner.length
    return {
      // Counts one for the bracket, one for each comma, and in objects one for each colon.
      values: inner.reduce((sum, { values }) => sum + values, 1 + Math.max(0, own - 1)),
      depth: 1 + Math.max(0, ...inner.map(({ depth }) => depth)),
    }
  }
  const fits = (json: Buffer, cut: number, values: number, depth: number): boolean => {
    const bounds = new JsonBounds({ bytes: MEBIBYTE, values, depth })
    try {
      bounds.scan(json.subarray(0, cut))
      bounds.scan(json.subarray(cut))
      return true
    } catch {
      return false
    }
  }
  fc.assert(
    fc.property(fc.json(), fc.nat(), (text, at) => {
      const json = Buffer.from(JSON.stringify(JSON.parse(text)))
      const { values, depth } = weigh(JSON.parse(text))
      const cut = at % (json.length + 1)
      if (!fits(json, cut, values, depth)) throw new Error(`${values} values, ${depth} levels: refused`)
      if (values > 0 && fits(json, cut, values - 1, depth)) throw new Error(`${values} values are too many`)
      if (depth > 0 && fits(json, cut, values, depth - 1)) throw new Error(`${depth} levels are too many`)
    }),
    { numRuns: 500 },
  )
})

t.test('jsonIn: a string inside an object is bounded, too', async (t) => {
  t.strictSame(parseEmbeddedJson('{"a":[1]}'), { a: [1] })
  t.equal(parseEmbeddedJson('{"a":'), undefined)
  t.equal(parseEmbeddedJson(`"${'x'.repeat(2 * MEBIBYTE)}"`), undefined)
  t.equal(parseEmbeddedJson(`[${Array(200_000).fill('[]').join(',')}]`), undefined)
  t.equal(parseEmbeddedJson(`${'['.repeat(200)}${']'.repeat(200)}`), undefined)
})
