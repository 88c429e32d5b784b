/** Sealed values that clients and stores hold: request state, cursors of lists, encrypted entries. */
import { makeMemoryStore, sealStore } from '../../../runtime/store/index.ts'
import { makeCursors } from '../../../runtime/vmcp/catalog/cursors.ts'
import {
  makeStateSealer,
  type StateContent,
} from '../../../runtime/vmcp/clients/stateless-era/sealed-state.ts'
import { recordedAtMs, recordedSecret, type StoredPart } from './part.ts'

const trace = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
const binding = { caller: 'https://issuer.example\0ada', request: 'recorded-request' }
const states: readonly StateContent[] = [
  { kind: 'pass', value: '"recorded state of the backend"', backend: 'recorded-backend', trace },
  { kind: 'pass', value: undefined, backend: 'recorded-backend', trace: undefined },
  { kind: 'parked', value: 'recorded-call', trace },
  { kind: 'again', trace: undefined },
]
const lists = ['tools', 'resources', 'templates', 'prompts'] as const

const sealer = (nowMs: number) =>
  makeStateSealer({
    server: 'team:recorded',
    secrets: () => [recordedSecret],
    ttlMs: 60_000,
    now: () => nowMs,
  })
const cursors = () => makeCursors(() => recordedSecret)
const newSecret = Buffer.from('another-secret-that-seals-from-now-on-9876543210')
const entries: readonly (readonly [key: string, value: string])[] = [
  ['plain', 'a token'],
  ['plain:with spaces', '{"text":"ü\\u0000"}'],
]

export const sealedValuesPart: StoredPart = {
  name: 'sealed-values',
  async record() {
    const inner = makeMemoryStore()
    const store = sealStore(inner, () => [Buffer.from(recordedSecret)]).namespace('records:')
    for (const [key, value] of entries) await store.set(key, value)
    return {
      states: states.map((content) => ({ content, state: sealer(recordedAtMs).seal(content, binding) })),
      cursors: lists.map((list, index) => ({
        list,
        cursor: cursors().write(list, `${list}-last`, index + 7),
      })),
      entries: await Promise.all(
        entries.map(async ([key, value]) => ({ key, value, sealed: await inner.get(`records:${key}`) })),
      ),
    }
  },
  async check(t, recorded) {
    await t.test('request state opens for its caller and request until it expires', async (t) => {
      for (const { content, state } of recorded['states']) {
        const opened = sealer(recordedAtMs + 59_999).open(state, binding)
        t.strictSame(JSON.parse(JSON.stringify(opened)), content, content.kind)
        for (const other of [
          { ...binding, caller: 'https://issuer.example\0eve' },
          { ...binding, request: 'another' },
        ])
          t.equal(sealer(recordedAtMs).open(state, other), undefined)
        t.equal(sealer(recordedAtMs + 60_000).open(state, binding), undefined)
      }
    })
    await t.test('a cursor points to the position after the same item', async (t) => {
      for (const [index, { list, cursor }] of recorded['cursors'].entries())
        t.strictSame(cursors().read(list, cursor), { after: `${list}-last`, position: index + 7 })
    })
    await t.test('an encrypted entry opens with its key, also after a rotation', async (t) => {
      const inner = makeMemoryStore()
      const store = sealStore(inner, () => [newSecret, Buffer.from(recordedSecret)])
      for (const { key, value, sealed } of recorded['entries']) {
        await inner.set(`records:${key}`, sealed)
        await inner.set('records:elsewhere', sealed)
        t.equal(await store.get('records:elsewhere'), undefined)
        t.equal(await store.namespace('records:').get(key), value)
        t.equal(await sealStore(inner, () => [newSecret]).get(`records:${key}`), value, 'sealed again')
      }
    })
  },
}
