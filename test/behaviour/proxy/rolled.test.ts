/**
 * Clients with open connections and constant calls lose nothing when one proxy replaces another: processes as in pods,
 * SIGTERM as the kubelet sends it, and new connections to the new process.
 */
import { once } from 'node:events'
import { Agent, createServer, type IncomingMessage, request } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { startGatehouse } from '../../helpers/gatehouse.ts'

const callers = 40
const rolls = 2
/** Calls that are answered between two rollouts. */
const between = 400

async function target(t: Test): Promise<string> {
  const server = createServer((req, res) => {
    req.resume().once('end', () => {
      res.setHeader('Content-Type', 'application/json')
      res.end('{"jsonrpc":"2.0","id":1,"result":{"content":[]}}')
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

async function startProxy(t: Test, targetUri: string) {
  const env = { ...process.env, GATEHOUSE_SHUTDOWN_GRACE: '50s' }
  const args = ['proxy', '--target-uri', targetUri, '--host', '127.0.0.1', '--port', '0', 'notes']
  const running = startGatehouse(args, env)
  t.teardown(() => running.interrupt())
  const [, port = ''] = await running.waitFor(/started for server notes on port (\d+)/)
  return { running, port: Number(port) }
}

/** Behaves like a Service: open connections stay, and new connections go to the current process. */
class Way extends Agent {
  to = 0

  override createConnection(): Socket {
    return connect(this.to, '127.0.0.1')
  }
}

t.setTimeout(240_000)

t.test('rolled: no call on an open connection is lost', async (t) => {
  const targetUri = await target(t)
  const way = new Way({ keepAlive: true, maxSockets: callers })
  t.teardown(() => way.destroy())
  const lost: string[] = []
  const seen = { answered: 0, stopped: false }
  const body = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{}}}'
  const call = async (): Promise<void> => {
    const headers = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' }
    const req = request({ host: '127.0.0.1', path: '/mcp', method: 'POST', agent: way, headers })
    req.end(body)
    const [res] = (await once(req, 'response')) as [IncomingMessage]
    res.resume()
    await once(res, 'end')
    if (res.statusCode === 200) seen.answered++
    else lost.push(`status ${res.statusCode}`)
  }
  const caller = async (): Promise<void> => {
    while (!seen.stopped) {
      await call().catch((error: NodeJS.ErrnoException) => lost.push(error.code ?? error.message))
      await pause(Math.random() * 10)
    }
  }
  const moreAnswers = async (): Promise<void> => {
    const enough = seen.answered + between
    while (seen.answered < enough) await pause(10)
  }

  let present = await startProxy(t, targetUri)
  way.to = present.port
  const all = Array.from({ length: callers }, caller)
  for (let roll = 0; roll < rolls; roll++) {
    await moreAnswers()
    const next = await startProxy(t, targetUri)
    way.to = next.port
    const ended = once(present.running.child, 'exit')
    present.running.child.kill('SIGTERM')
    t.same(await ended, [0, null], 'it exits on its own, well before the grace period ends')
    present = next
  }
  await moreAnswers()
  seen.stopped = true
  await Promise.all(all)
  t.comment(`${seen.answered} answered, ${lost.length} of ${callers * rolls} connections lost a call`)
  t.same(lost, [])
})
