import t from 'tap'
import { type Message, scanMessage } from '../../../runtime/mcp/index.ts'
import { Openings } from '../../../runtime/proxy/stdio-server/openings.ts'

const minute = 60_000
const result = { protocolVersion: '2025-11-25', capabilities: {}, serverInfo: { name: 's', version: '1' } }

function jsonOf(message: object): Buffer {
  return Buffer.from(JSON.stringify({ jsonrpc: '2.0', ...message }))
}

function initialize(id: number, name = 'client'): Buffer {
  return jsonOf({ id, method: 'initialize', params: { protocolVersion: '2025-11-25', clientInfo: { name } } })
}

/** A server process: its received messages, and a function to send from it. */
interface FakeProcess {
  readonly received: Message[]
  say(message: object): void
  isClosed: boolean
}

function setup() {
  let now = 0
  const processes: FakeProcess[] = []
  const openings = new Openings(
    (onMessage) => {
      const end = Promise.withResolvers<string>()
      const process: FakeProcess = {
        received: [],
        say: (message) => onMessage(scanMessage(jsonOf(message))),
        isClosed: false,
      }
      processes.push(process)
      return {
        ended: end.promise,
        send: (bytes) => void process.received.push(scanMessage(bytes)),
        close: async () => {
          process.isClosed = true
          end.resolve('closed')
        },
      }
    },
    () => now,
  )
  return {
    openings,
    processes,
    /** Advances the clock by minutes; conversations count as idle after half an hour. */
    passMinutes(count: number) {
      for (let i = 0; i < count; i++) {
        now += minute
        openings.evict(now - 30 * minute)
      }
    },
    client() {
      const got: Message[] = []
      return { got, link: openings.link((message) => got.push(message)) }
    },
  }
}

function introduced(openings: Openings) {
  return openings.introduce(Buffer.from('{"protocolVersion":"2025-11-25"}'))
}

t.test('the response to a later request is not used as the response to initialize', async (t) => {
  const { processes, client } = setup()
  const { got, link } = client()
  link.send(initialize(1))
  link.send(jsonOf({ id: 2, method: 'ping' }))
  processes[0]?.say({ id: 2, result: {} })
  processes[0]?.say({ id: 1, result })
  await new Promise(setImmediate)
  t.same(
    got.map(({ id, result: raw }) => [id, raw?.toString()]),
    [
      ['2', '{}'],
      ['1', JSON.stringify(result)],
    ],
  )
})

t.test('a response with another id is the response to initialize when nothing else was sent', async (t) => {
  const { processes, client } = setup()
  const { got, link } = client()
  link.send(initialize(1))
  processes[0]?.say({ id: 'odd', result })
  await new Promise(setImmediate)
  t.equal(got[0]?.id, '1')
})

t.test('a client whose initialize gets no response does not delay other clients', async (t) => {
  const { openings, processes, client } = setup()
  client().link.send(initialize(1, 'ignored'))
  const introduction = introduced(openings)
  client().link.send(initialize(1, 'answered'))
  processes.at(-1)?.say({ id: 1, result })
  t.equal((await introduction).answer.result?.toString(), JSON.stringify(result))
  t.equal(processes.length, 2)
})

t.test('a process that takes too long to start is abandoned', async (t) => {
  const { openings, processes, passMinutes, client } = setup()
  const first = client()
  first.link.send(initialize(1))
  await first.link.close()
  passMinutes(8)
  const second = client()
  second.link.send(initialize(1))
  t.equal(processes.length, 1, 'eight minutes are a slow start')
  await second.link.close()
  const introduction = introduced(openings)
  passMinutes(4)
  t.equal(processes[0]?.isClosed, true)
  await new Promise(setImmediate)
  t.equal(processes.length, 2, 'the look-up continues with a new process')
  processes[1]?.say({ id: 0, result })
  t.equal((await introduction).opensSession, true)
})

t.test('a client that waits very long keeps its process and delays no other client', async (t) => {
  const { openings, processes, passMinutes, client } = setup()
  const { got, link } = client()
  link.send(initialize(1))
  const introduction = introduced(openings)
  passMinutes(12)
  await new Promise(setImmediate)
  processes[1]?.say({ id: 0, result })
  t.equal((await introduction).opensSession, true)
  t.equal(processes[0]?.isClosed, false)
  processes[0]?.say({ id: 1, result })
  await new Promise(setImmediate)
  t.equal(got[0]?.id, '1')
  link.send(jsonOf({ id: 2, method: 'ping' }))
  t.equal(processes[0]?.received.at(-1)?.method, 'ping')
})

t.test('a response that the client cannot use ends the conversation', async (t) => {
  const { openings, processes } = setup()
  const link = openings.link(() => {
    throw new Error('cannot be used')
  })
  link.send(initialize(1))
  processes[0]?.say({ id: 1, result })
  t.equal(await link.ended, 'closed')
})
