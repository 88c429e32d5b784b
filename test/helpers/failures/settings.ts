/** Failures of settings, stores, the cluster and the audit log. */
import type { Test } from 'tap'
import { missingRedis, type RedisProcess, startRedis } from '../redis.ts'
import { openSession, stateless } from '../mcp/wire.ts'
import { vmcpConfig } from '../vmcp/vmcp.ts'
import { backend, rig, type Rig } from './rig.ts'
import { type Failure, noState } from './views.ts'

async function redisRig(t: Test, more: object = {}): Promise<{ running: Rig; redis: RedisProcess }> {
  const redis = await startRedis()
  t.teardown(() => redis.stop())
  const sessionStorage = { provider: 'redis', address: redis.addr }
  return { redis, running: await rig(t, { b: await backend(t) }, { sessionStorage, ...more }) }
}

const redisFix = /check that Redis is running/

export const settingFailures: readonly Failure[] = [
  {
    name: 'a changed configuration that cannot be used',
    type: 'config_refused',
    lasts: true,
    async drive(t) {
      const url = await backend(t)
      const running = await rig(t, { b: url })
      const authz = { type: 'cedar', policies: ['no policy'] }
      running.changeConfig()
      t.throws(() =>
        running.vmcp.reload(vmcpConfig({ b: url }, { incomingAuth: { type: 'anonymous', authz } })),
      )
      return running
    },
    message: /the current one stays in use/,
    fix: /gatehouse vmcp validate/,
    metric: 'gatehouse_config_reloads_total{outcome="failure"} 1',
    async also(t, _told, running) {
      running.vmcp.reload(vmcpConfig({ b: 'http://127.0.0.1:9/mcp' }))
      const { status, metrics } = await running.told()
      t.notOk(
        status.problem_details.some(({ type }) => type === 'config_refused'),
        'over with the next good one',
      )
      t.match(metrics, 'gatehouse_config_reloads_total{outcome="success"} 1')
    },
  },
  {
    name: 'settings that wait for a restart',
    type: 'restart_needed',
    lasts: true,
    async drive(t) {
      const url = await backend(t)
      const running = await rig(t, { b: url })
      const { checksum } = running
      running.vmcp.reload(vmcpConfig({ b: url }, { console: { enabled: false } }), { checksum })
      return running
    },
    message: /take effect at the next start: telemetry, console$/,
    fix: /restart the server/,
  },
  {
    name: 'Redis that is gone, for sessions',
    type: 'session_storage',
    lasts: true,
    skip: missingRedis,
    async drive(t) {
      const { running, redis } = await redisRig(t)
      await running.call('b_echo')
      await redis.stop()
      return running
    },
    message: /^session storage is unreachable$/,
    fix: redisFix,
  },
  {
    name: 'Redis that is gone, for limits',
    type: 'limits_store',
    lasts: true,
    skip: missingRedis,
    async drive(t) {
      const limit = { maxTokens: 100, refillPeriod: '1h' }
      const { running, redis } = await redisRig(t, { rateLimiting: { shared: limit } })
      await redis.stop()
      await stateless(running.vmcp.url, 'tools/call', { name: 'b_echo', arguments: {} })
      return running
    },
    message: /^rate limits cannot be checked: calls are allowed$/,
    fix: redisFix,
    metric: 'gatehouse_rate_limit_fail_open_total',
  },
  {
    name: 'an API server of the cluster that refuses the report',
    type: 'status_report',
    lasts: true,
    async drive(t) {
      const running = await rig(t, { b: await backend(t) })
      running.refuseReports()
      return running
    },
    message: /^backend health could not be reported to the cluster$/,
    fix: /its report ConfigMap/,
    silent: { condition: 'the report is what cannot be written' },
  },
  {
    name: 'audit lines that are lost',
    type: 'audit_lost',
    lasts: true,
    async drive(t) {
      const running = await rig(
        t,
        { b: await backend(t) },
        { audit: { enabled: true, logFile: '/dev/full' } },
      )
      await running.call('b_echo')
      return running
    },
    message: /^audit lines are lost$/,
    fix: /audit\.logFile/,
    logged: { level: 'error', err: { code: 'ENOSPC' } },
    metric: 'gatehouse_audit_lines_lost_total',
  },
  {
    name: 'a bound on sessions',
    type: 'request_failed',
    lasts: false,
    async drive(t) {
      const running = await rig(t, { b: await backend(t) }, {}, { maxSessions: 1 })
      await openSession(running.vmcp.url)
      await openSession(running.vmcp.url).catch(() => {})
      return running
    },
    reason: 'too_many_sessions',
    message: /a request failed/,
    fix: /--max-sessions/,
    logged: { reason: 'too_many_sessions' },
    call: { method: 'initialize', outcome: 'error' },
    silent: noState,
  },
]
