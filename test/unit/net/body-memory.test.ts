/** Memory of request bodies: bounded, shared between callers, and released. */
import { EventEmitter } from 'node:events'
import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import t from 'tap'
import { makeCaller } from '../../../runtime/net/index.ts'
import { Exchange } from '../../../runtime/net/pipeline.ts'
import { BodyMemory, bodyBytesOf } from '../../../runtime/net/load/body-memory.ts'

function rig() {
  let now = 0
  const memory = new BodyMemory({ maxBytes: 1000, now: () => now, makeError: () => new Error('refused') })
  return {
    memory,
    wait(ms: number) {
      now += ms
    },
    /** Starts the body of a request by this user. */
    begin(subject: string) {
      const req = new IncomingMessage(new Socket())
      const exchange = new Exchange(req, new ServerResponse(req))
      exchange.caller = makeCaller({ issuer: 'https://idp.example', subject, claims: {}, token: '' })
      const body = { gaveWay: false }
      const held = memory.begin(exchange, () => (body.gaveWay = true))
      return {
        body,
        take: (bytes: number) => memory.take(held, bytes),
        arrived: () => memory.arrived(held),
        over: () => (exchange.res as EventEmitter).emit('close'),
      }
    },
  }
}

t.test('body memory: the memory of a request is released when its response is complete', async (t) => {
  const { memory, begin } = rig()
  const one = begin('a')
  one.take(300)
  one.arrived()
  t.equal(memory.bytes, 300, 'an arrived body counts')
  one.over()
  t.equal(memory.bytes, 0)
})

t.test('body memory: one caller is limited to a share, and other callers can use the rest', async (t) => {
  const { memory, begin } = rig()
  for (let i = 0; i < 7; i++) {
    const one = begin('a')
    one.take(100)
    one.arrived()
  }
  t.throws(() => begin('a').take(100), /refused/)
  const other = begin('b')
  other.take(250)
  t.equal(memory.bytes, 950)
})

t.test('body memory: a slow body of the largest holder is dropped, a fast one is not', async (t) => {
  const { memory, begin, wait } = rig()
  const slow = begin('a')
  slow.take(600)
  const fair = begin('b')
  fair.take(300)
  t.throws(() => begin('c').take(200), /refused/, 'no body has been arriving for long')
  wait(1_000)
  begin('c').take(200)
  t.same([slow.body.gaveWay, fair.body.gaveWay], [true, false])
  t.equal(memory.bytes, 500)
  slow.over()
  t.equal(memory.bytes, 500, 'given back once')
})

t.test('body memory: a quarter of the memory, within bounds', async (t) => {
  const mebibyte = 1024 * 1024
  t.equal(bodyBytesOf(512 * mebibyte), 128 * mebibyte)
  t.equal(bodyBytesOf(128 * mebibyte), 64 * mebibyte)
  t.equal(bodyBytesOf(64 * 1024 * mebibyte), 1024 * mebibyte)
})
