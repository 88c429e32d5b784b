import t from 'tap'
import { Breaker } from '../../../runtime/net/breaker.ts'
import { proves } from '../../helpers/proves.ts'

proves(
  '3.state.circuit.open',
  '3.state.circuit.half-open',
  '3.config.operational.failureHandling.circuitBreaker.failureThreshold',
  '3.config.operational.failureHandling.circuitBreaker.timeout',
)

function make() {
  let now = 1_000
  const breaker = new Breaker({ failureThreshold: 3, timeoutMs: 60_000, now: () => now })
  return {
    breaker,
    pass(ms: number) {
      now += ms
    },
  }
}

t.test('breaker: opens when consecutive failures reach the threshold', async (t) => {
  const { breaker } = make()
  breaker.failure()
  breaker.failure()
  breaker.success()
  breaker.failure()
  breaker.failure()
  t.equal(breaker.state, 'closed', 'a success resets the count')
  t.equal(breaker.changedAt, 0)
  breaker.failure()
  t.equal(breaker.state, 'open')
  t.equal(breaker.changedAt, 1_000)
  t.notOk(breaker.allows())
})

t.test('breaker: allows one trial after the timeout, and its outcome decides', async (t) => {
  const { breaker, pass } = make()
  for (let i = 0; i < 3; i++) breaker.failure()
  pass(59_999)
  t.notOk(breaker.allows())
  pass(1)
  t.ok(breaker.allows())
  breaker.start()
  t.equal(breaker.state, 'half-open')
  t.notOk(breaker.allows(), 'one at a time')
  breaker.failure()
  t.equal(breaker.state, 'open')
  t.equal(breaker.changedAt, 61_000, 'the timeout starts again')
  pass(60_000)
  breaker.start()
  breaker.success()
  t.equal(breaker.state, 'closed')
  t.ok(breaker.allows())
})

t.test('breaker: a call that ends while it is open changes nothing', async (t) => {
  const { breaker, pass } = make()
  for (let i = 0; i < 9; i++) breaker.failure()
  breaker.success()
  t.notOk(breaker.allows(), 'a call from before')
  t.equal(breaker.changedAt, 1_000)
  pass(60_000)
  t.ok(breaker.allows())
})

t.test('breaker: an abandoned trial allows another one', async (t) => {
  const { breaker, pass } = make()
  for (let i = 0; i < 3; i++) breaker.failure()
  pass(60_000)
  breaker.start()
  breaker.release()
  t.equal(breaker.state, 'half-open')
  t.ok(breaker.allows())
  breaker.start()
  breaker.success()
  t.equal(breaker.state, 'closed')
})
