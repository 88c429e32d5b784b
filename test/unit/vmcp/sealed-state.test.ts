import t from 'tap'
import { makeStateSealer } from '../../../runtime/vmcp/client-codecs/stateless-era/sealed-state.ts'

const binding = { caller: 'issuer\0ada', request: 'digest' }
const content = { kind: 'pass', value: 'the backend’s own state' } as const

function make(secret?: string) {
  let now = 0
  return {
    sealer: makeStateSealer({ secret: () => secret, ttlMs: 1_000, now: () => now }),
    pass(ms: number) {
      now += ms
    },
  }
}

t.test('state: opens for whom and what it was sealed, until its time is over', async (t) => {
  const { sealer, pass } = make()
  const state = sealer.seal(content, binding)
  t.same(sealer.open(state, binding), content)
  t.notMatch(Buffer.from(state, 'base64url').toString('latin1'), 'backend')
  t.equal(sealer.open(state, { ...binding, caller: 'issuer\0eve' }), undefined)
  t.equal(sealer.open(state, { ...binding, request: 'other' }), undefined)
  pass(999)
  t.same(sealer.open(state, binding), content)
  pass(1)
  t.equal(sealer.open(state, binding), undefined)
})

t.test('state: no single character can be changed, added or taken away', async (t) => {
  const { sealer } = make()
  const state = sealer.seal(content, binding)
  for (let i = 0; i < state.length; i++) {
    const changed = `${state.slice(0, i)}${state[i] === 'A' ? 'B' : 'A'}${state.slice(i + 1)}`
    if (sealer.open(changed, binding) !== undefined) t.fail(`changed at ${i}`)
  }
  for (const other of [
    state.slice(0, -1),
    `${state}A`,
    `${state}=`,
    `${state}-TAMPERED`,
    '',
    'AAAA',
    'x'.repeat(300_000),
  ]) {
    t.equal(sealer.open(other, binding), undefined)
  }
})

t.test('state: replicas with one secret accept each other’s, others do not', async (t) => {
  const state = make('shared').sealer.seal(content, binding)
  t.same(make('shared').sealer.open(state, binding), content)
  t.equal(make('other').sealer.open(state, binding), undefined)
  t.equal(make().sealer.open(state, binding), undefined)
})
