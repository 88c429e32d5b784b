/** Failures of quotas: exhausted, not countable, or configured without effect. */
import type { Test } from 'tap'
import { startRawBackend } from '../mcp/raw-backend.ts'
import { stateless } from '../mcp/wire.ts'
import { missingRedis, startRedis } from '../redis.ts'
import { backend, rig, type Rig } from './rig.ts'
import { type Failure, noState } from './views.ts'

type Settings = Readonly<Record<string, unknown>>

const monthly: Settings = { name: 'monthly', per: 'server', window: 'month', limit: 5 }

/** A server with this quota, called the given number of times. */
async function called(t: Test, quota: Settings, calls: number, more: Settings = {}): Promise<Rig> {
  const running = await rig(t, { b: await backend(t) }, { quotas: [{ ...monthly, ...quota }], ...more })
  for (let i = 0; i < calls; i++) await running.call('b_echo')
  return running
}

export const quotaFailures: readonly Failure[] = [
  {
    name: 'a quota that refuses',
    type: 'quota_exceeded',
    lasts: false,
    drive: (t) => called(t, { limit: 1 }, 4),
    reason: 'monthly',
    message: /a quota rejected a call/,
    fix: /wait until the period of quota monthly ends, or raise its limit/,
    logged: { level: 'info', quota: 'monthly', per: 'server', unit: 'calls', enforced: true },
    metric:
      'gatehouse_quota_exceeded_calls_total{server="test-vmcp",quota="monthly",per="server",action="block"} 3',
    call: { name: 'b_echo', outcome: 'denied', denied: { by: 'quota' } },
    silent: noState,
  },
  {
    name: 'a quota that is nearly used up',
    type: 'quota_level',
    lasts: true,
    drive: (t) => called(t, {}, 4),
    message: /^quota monthly is at 80% or more for the whole server until /,
    fix: /raise the limit of monthly in quotas/,
    logged: { level: 'info' },
    metric: 'gatehouse_quota_usage_ratio{server="test-vmcp",quota="monthly",per="server"} 0.8',
  },
  {
    name: 'a quota that is used up',
    type: 'quota_level',
    lasts: true,
    drive: (t) => called(t, {}, 5),
    message: /^quota monthly is exhausted for the whole server until .*: calls are rejected$/,
    fix: /raise the limit of monthly in quotas/,
    metric: 'gatehouse_quota_usage_ratio{server="test-vmcp",quota="monthly",per="server"} 1',
  },
  {
    name: 'Redis that is gone, for quotas',
    type: 'quota_store',
    lasts: true,
    skip: missingRedis,
    async drive(t) {
      const redis = await startRedis()
      const sessionStorage = { provider: 'redis', address: redis.addr }
      const running = await called(t, {}, 1, { sessionStorage })
      await redis.stop()
      await stateless(running.vmcp.url, 'tools/call', { name: 'b_echo', arguments: {} })
      return running
    },
    message: /^quotas cannot be checked: calls are allowed$/,
    fix: /check that Redis is running/,
    metric: 'gatehouse_quota_fail_open_total',
  },
  {
    name: 'a quota of a tool that no backend offers',
    type: 'tool_unmatched',
    lasts: true,
    drive: (t) => called(t, { match: { backend: 'b', tool: 'b_echo' } }, 1),
    message: /^quotas\[0\]\.match\.tool: backend b does not offer a tool "b_echo"$/,
    fix: /the tool's name on its backend/,
  },
  {
    name: 'a webhook for a tool that no backend offers',
    type: 'tool_unmatched',
    lasts: true,
    async drive(t) {
      const validating = [{ name: 'v', url: 'https://127.0.0.1:1', match: { tools: ['b_echo'] } }]
      return rig(t, { b: await backend(t) }, { webhooks: { validating } })
    },
    message: /^webhooks\.validating\[0\]\.match\.tools\[0\]: no backend offers a tool "b_echo"$/,
    fix: /the tool's name on its backend/,
  },
  {
    name: 'a cost that cannot be counted',
    type: 'cost_unreadable',
    lasts: false,
    backend: 'b',
    async drive(t) {
      const { url, close } = await startRawBackend({
        responses: { 'tools/call': () => '{"content":[],"_meta":{"gatehouse.dev/cost":"3 EUR"}}' },
      })
      t.teardown(close)
      const quotas = [{ ...monthly, unit: 'cost' }]
      const running = await rig(t, { b: url }, { quotas })
      await running.call('b_echo')
      return running
    },
    reason: 'cost',
    message: /reported an invalid cost/,
    fix: /report this to the operator of b: gatehouse\.dev\/cost/,
    logged: { level: 'warn', backend: 'b' },
    silent: noState,
  },
]
