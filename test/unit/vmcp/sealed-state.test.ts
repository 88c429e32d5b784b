import { readFileSync } from 'node:fs'
import t from 'tap'
import { maxBackendStateBytes } from '../../../runtime/mcp/index.ts'
import { makeStateSealer } from '../../../runtime/vmcp/clients/stateless-era/sealed-state.ts'

const binding = { caller: 'issuer\0ada', request: 'digest' }
const content = {
  kind: 'pass',
  value: '"the backend’s own state"',
  backend: 'digest',
  trace: undefined,
} as const

function make(secret?: string, server = 'group:name') {
  let now = 0
  return {
    sealer: makeStateSealer({
      server,
      secrets: () => (secret === undefined ? [] : [secret]),
      ttlMs: 1_000,
      now: () => now,
    }),
    pass(ms: number) {
      now += ms
    },
  }
}

t.test('state: opens only for the caller and request that it was sealed for, until it expires', async (t) => {
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

t.test('state: changing, adding or removing any character makes it invalid', async (t) => {
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

t.test('state: replicas with the same secret accept each other’s state, other replicas do not', async (t) => {
  const state = make('shared').sealer.seal(content, binding)
  t.same(make('shared').sealer.open(state, binding), content)
  t.equal(make('other').sealer.open(state, binding), undefined)
  t.equal(make().sealer.open(state, binding), undefined)
})

t.test('state: a server with the same secret does not accept another server’s', async (t) => {
  const state = make('shared').sealer.seal(content, binding)
  t.equal(make('shared', 'group:other').sealer.open(state, binding), undefined)
})

t.test('state: every kind opens unchanged, including the longest value', async (t) => {
  const { sealer } = make()
  const trace = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
  for (const one of [
    { kind: 'pass', value: undefined, backend: 'digest', trace },
    { kind: 'pass', value: '"lines\n\u0000"', backend: 'digest', trace: undefined },
    { kind: 'pass', value: 'x'.repeat(maxBackendStateBytes), backend: 'd'.repeat(43), trace },
    { kind: 'parked', value: 'an id', trace },
    { kind: 'again', trace: undefined },
  ] as const)
    t.same(sealer.open(sealer.seal(one, binding), binding), one)
  const long = { kind: 'pass', value: 'x'.repeat(maxBackendStateBytes + 1), backend: 'digest' } as const
  t.throws(() => sealer.seal(long, binding), RangeError)
})

t.test('state: state sealed by the previous build is rejected as unknown', async (t) => {
  const file = new URL('../../fixtures/previous-build.json', import.meta.url)
  const { secret, states } = JSON.parse(readFileSync(file, 'utf8'))
  t.equal(states.length, 3)
  for (const { state, caller, request, sealedAt } of states) {
    const options = { secrets: () => [secret], ttlMs: 1_000, now: () => sealedAt + 1 }
    t.equal(makeStateSealer({ server: 'group:name', ...options }).open(state, { caller, request }), undefined)
  }
})
