import t from 'tap'
import { makeEvents } from '../../../runtime/observe/index.ts'
import { HealthMonitor, type HealthSettings } from '../../../runtime/vmcp/backends/health/monitor.ts'
import { GatehouseError } from '../../../schemas/index.ts'
import { proves } from '../../helpers/proves.ts'

proves(
  '3.state.backend.unhealthy',
  '3.state.backend.healthy',
  '3.config.operational.failureHandling.unhealthyThreshold',
  '3.config.operational.failureHandling.healthCheckInterval',
  '3.config.operational.failureHandling.healthCheckTimeout',
  '3.config.operational.failureHandling.circuitBreaker.enabled',
)

const settings: HealthSettings = {
  intervalMs: 30_000,
  timeoutMs: 10_000,
  unhealthyThreshold: 3,
  breaker: undefined,
}

function make(
  more: Partial<HealthSettings> = {},
  { toleratesRejection = false }: { readonly toleratesRejection?: boolean } = {},
) {
  let now = 0
  let failure: Error | undefined
  let takesMs = 0
  const timers: { ms: number; work: () => void; cancelled: boolean }[] = []
  const changes: string[] = []
  const monitor = new HealthMonitor({
    server: 'hub',
    settings: { ...settings, ...more },
    clock: {
      now: () => now,
      after(ms, work) {
        const timer = { ms, work, cancelled: false }
        timers.push(timer)
        return () => {
          timer.cancelled = true
        }
      },
    },
    events: makeEvents(),
    onChange: (name) => changes.push(name),
  })
  monitor.add({
    name: 'b',
    toleratesRejection,
    async check() {
      now += takesMs
      if (failure) throw failure
    },
  })
  return {
    monitor,
    changes,
    timers,
    health: () => monitor.health('b'),
    async check(error?: Error, ms = 0) {
      failure = error
      takesMs = ms
      await monitor.check('b')
    },
    /** Sets the result of all further checks. */
    responses(error: Error | undefined) {
      failure = error
    },
    pass(ms: number) {
      now += ms
    },
  }
}

const lost = new GatehouseError('BACKEND_SESSION_LOST')
const down = new GatehouseError('BACKEND_UNREACHABLE')
const refused = new GatehouseError('BACKEND_AUTH_FAILED')

t.test(
  'monitor: unknown at first, healthy after a check, unhealthy at the threshold, healthy again after one success',
  async (t) => {
    const { health, check, monitor, changes } = make()
    t.equal(health().status, 'unknown')
    t.ok(monitor.isAvailable('b'), 'calls do not wait for the first check')
    await check()
    t.equal(health().status, 'healthy')
    await check(down)
    await check(down)
    t.match(health(), { status: 'healthy', consecutiveFailures: 2, lastErrorCategory: 'connection_failed' })
    t.ok(monitor.isAvailable('b'))
    await check(down)
    t.match(health(), { status: 'unhealthy', consecutiveFailures: 3 })
    t.notOk(monitor.isAvailable('b'))
    t.notOk(monitor.admitCall('b'))
    t.same(changes, ['b'])
    await check()
    t.match(health(), { status: 'healthy', consecutiveFailures: 0, lastErrorCategory: undefined })
    t.ok(monitor.isAvailable('b'))
    t.same(changes, ['b', 'b'])
  },
)

t.test('monitor: a slow backend is degraded and stays available', async (t) => {
  const { health, check, monitor } = make()
  await check(undefined, 5_001)
  t.equal(health().status, 'degraded')
  t.ok(monitor.isAvailable('b'))
})

t.test('monitor: rejected credentials are an error, unless calls may use other credentials', async (t) => {
  const without = make({ unhealthyThreshold: 1 })
  await without.check(refused)
  t.equal(without.health().status, 'unauthenticated')
  t.notOk(without.monitor.isAvailable('b'))
  t.notOk(without.monitor.admitCall('b'))
  const given = make({ unhealthyThreshold: 1 }, { toleratesRejection: true })
  await given.check(refused)
  t.equal(given.health().status, 'healthy', 'the backend responds, but requires a user')
})

t.test(
  'monitor: calls and checks drive the circuit, and without a breaker there is no circuit',
  async (t) => {
    const off = make()
    t.equal(off.health().circuit, undefined)
    const { monitor, health, check, pass, changes } = make({
      breaker: { failureThreshold: 2, timeoutMs: 60_000 },
    })
    await check()
    monitor.report('b', down)
    monitor.report('b', new GatehouseError('BACKEND_FAILED'))
    t.equal(health().circuit?.state, 'open')
    t.notOk(monitor.isAvailable('b'))
    t.throws(() => monitor.admit('b'), { code: 'BACKEND_UNAVAILABLE' })
    t.notOk(monitor.admitCall('b'))
    t.same(changes, ['b'])
    pass(60_000)
    t.ok(monitor.admitCall('b'))
    t.equal(health().circuit?.state, 'half-open')
    t.throws(() => monitor.admit('b'), { code: 'BACKEND_UNAVAILABLE' })
    t.notOk(monitor.admitCall('b'), 'the circuit allows one trial at a time')
    monitor.report('b', undefined)
    t.equal(health().circuit?.state, 'closed')
  },
)

t.test('monitor: errors caused by one caller do not open the circuit for all', async (t) => {
  const { monitor, health } = make({ breaker: { failureThreshold: 1, timeoutMs: 60_000 } })
  for (const code of [
    'BACKEND_AUTH_FAILED',
    'BACKEND_PROTOCOL',
    'BACKEND_UNAVAILABLE',
    'OAUTH_UNAVAILABLE',
  ] as const)
    monitor.report('b', new GatehouseError(code))
  t.equal(health().circuit?.state, 'closed')
})

t.test('monitor: slow calls open the circuit only when checks fail, too', async (t) => {
  const late = new GatehouseError('BACKEND_TIMEOUT')
  const breaker = { failureThreshold: 2, timeoutMs: 60_000 }
  const slow = make({ breaker, intervalMs: 0 })
  for (let i = 0; i < 5; i++) {
    slow.monitor.report('b', late)
    await new Promise(setImmediate)
  }
  t.match(slow.health(), { status: 'unknown', circuit: { state: 'closed' } }, 'the backend answers checks')

  const hung = make({ breaker, intervalMs: 0 })
  hung.responses(late)
  for (const state of ['closed', 'open']) {
    hung.monitor.report('b', late)
    hung.monitor.report('b', late)
    await new Promise(setImmediate)
    t.equal(hung.health().circuit?.state, state, 'one check at a time, and each counts once')
  }
  t.same(hung.changes, ['b'])

  hung.pass(60_000)
  hung.responses(undefined)
  hung.monitor.admit('b')
  hung.monitor.report('b', late)
  t.throws(() => hung.monitor.admit('b'), { message: /temporarily unavailable/ }, 'the trial is not over')
  await new Promise(setImmediate)
  t.equal(hung.health().circuit?.state, 'closed')
})

t.test(
  'monitor: checks run at the interval, have a time limit, and stop when the backend is removed',
  async (t) => {
    const { monitor, timers } = make()
    const [limit] = timers
    t.equal(limit?.ms, 10_000)
    await new Promise(setImmediate)
    t.ok(limit?.cancelled, 'the time limit of a completed check')
    const next = timers.find(({ ms }) => ms === 30_000)
    t.ok(next)
    monitor.remove('b')
    t.ok(next?.cancelled)
    t.equal(monitor.health('b').status, 'unknown')
  },
)

t.test(
  'monitor: a backend that has never responded is checked again soon, otherwise at the interval',
  async (t) => {
    const pauses: number[] = []
    let up = false
    let asked = 0
    const monitor = new HealthMonitor({
      server: 'hub',
      settings,
      clock: {
        now: () => 0,
        after(ms, work) {
          if (ms === settings.timeoutMs) return () => {}
          pauses.push(ms)
          queueMicrotask(work)
          return () => {}
        },
      },
      events: makeEvents(),
      onChange: () => {},
    })
    const responded = Promise.withResolvers<void>()
    monitor.add({
      name: 'b',
      toleratesRejection: false,
      async check() {
        asked++
        up ||= asked > 40
        if (asked === 43) {
          monitor.close()
          responded.resolve()
        }
        if (!up) throw down
      },
    })
    await responded.promise
    t.same(pauses.slice(0, 6), [500, 1_000, 2_000, 4_000, 5_000, 5_000], 'even after it counts as unhealthy')
    t.same(pauses.slice(34, 40), [5_000, 5_000, 30_000, 30_000, 30_000, 30_000], 'not for ever')
    t.same(pauses.slice(40), [30_000, 30_000])
  },
)

t.test('monitor: calls that lose their session make a backend degraded until a call succeeds', async (t) => {
  const { monitor, health, check } = make()
  await check()
  monitor.report('b', lost)
  monitor.report('b', lost)
  t.match(health(), { status: 'healthy', consecutiveFailures: 2, lastErrorCategory: 'session_lost' })
  monitor.report('b', undefined)
  t.match(health(), { status: 'healthy', consecutiveFailures: 0, lastErrorCategory: undefined })
  for (let n = 0; n < 3; n++) monitor.report('b', lost)
  t.match(health(), { status: 'degraded', consecutiveFailures: 3, lastErrorCategory: 'session_lost' })
  t.ok(monitor.isAvailable('b'), 'only calls can show that it works')
  await check()
  t.match(health(), { status: 'degraded', lastErrorCategory: 'session_lost' }, 'a check has its own session')
  monitor.report('b', down)
  t.equal(health().status, 'degraded', 'another error does not concern sessions')
  monitor.report('b', undefined)
  t.match(health(), { status: 'healthy', consecutiveFailures: 0, lastErrorCategory: undefined })
})

t.test('monitor: lost sessions count for the circuit breaker', async (t) => {
  const { monitor, health } = make({ breaker: { failureThreshold: 2, timeoutMs: 1_000 } })
  monitor.report('b', lost)
  t.equal(health().circuit?.state, 'closed')
  monitor.report('b', lost)
  t.equal(health().circuit?.state, 'open')
})

t.test('monitor: every view of a backend shows that its circuit is not closed', async (t) => {
  const { monitor, health, check, pass } = make({ breaker: { failureThreshold: 2, timeoutMs: 60_000 } })
  await check()
  t.match(health(), { status: 'healthy', circuit: { state: 'closed' } })
  pass(1_000)
  monitor.report('b', down)
  monitor.report('b', down)
  t.match(health(), {
    status: 'unhealthy',
    consecutiveFailures: 2,
    lastErrorCategory: 'connection_failed',
    lastTransitionAt: 1_000,
    circuit: { state: 'open' },
  })
  t.notOk(monitor.isAvailable('b'))
  pass(60_000)
  t.ok(monitor.isAvailable('b'), 'a trial may go out')
  monitor.admit('b')
  t.match(health(), { status: 'degraded', circuit: { state: 'half-open' } })
  monitor.report('b', undefined)
  t.match(health(), { status: 'healthy', consecutiveFailures: 0, circuit: { state: 'closed' } })
})

t.test('monitor: a busy response changes nothing, and ends a trial without a result', async (t) => {
  const { monitor, health, check, pass } = make({
    intervalMs: 0,
    unhealthyThreshold: 1,
    breaker: { failureThreshold: 1, timeoutMs: 60_000 },
  })
  const busy = new GatehouseError('BACKEND_UNAVAILABLE')
  await check(busy)
  t.match(health(), { status: 'unknown', consecutiveFailures: 0, circuit: { state: 'closed' } })
  t.ok(monitor.isAvailable('b'))
  await check()
  await check(busy)
  t.match(health(), { status: 'healthy', consecutiveFailures: 0, lastErrorCategory: undefined })
  for (const error of [busy, refused]) {
    monitor.report('b', down)
    pass(60_000)
    monitor.admit('b')
    await check(error)
    t.match(health(), { circuit: { state: 'half-open' } })
    t.doesNotThrow(() => monitor.admit('b'), 'another request may try')
    monitor.report('b', undefined)
  }
})

t.test(
  'monitor: an error during the start is forgotten with the first response, a later one is kept',
  async (t) => {
    const { health, check } = make({ intervalMs: 0, unhealthyThreshold: 2 })
    await check(down)
    await check(down)
    t.match(health(), { status: 'unhealthy', lastError: { category: 'connection_failed' } })
    await check()
    t.match(health(), { status: 'healthy', lastError: undefined })
    await check(down)
    await check()
    t.match(health(), { status: 'healthy', lastError: { category: 'connection_failed' } })
  },
)
