/** The console's explanation of denials: only policies that denied, and none that merely failed. */
import t from 'tap'
import type { ErrorCode } from '../../../schemas/index.ts'
import { callOf } from '../../../runtime/console/calls/call-of.ts'
import type { ExchangeRecord } from '../../../runtime/observe/index.ts'

function denialOf(errorCode: ErrorCode, decision: 'allow' | 'deny') {
  const policy = { decision, reason: ['policies[0]'], origin: () => ({}) }
  const record = { req: { headers: {} }, status: 200, durationMs: 1, outcome: 'error', errorCode, policy }
  const { denied, outcome } = callOf(record as unknown as ExchangeRecord, 'a.1', 0, 'none')
  return { denied, outcome }
}

t.test('only policies that denied are named', async (t) => {
  t.same(denialOf('FORBIDDEN', 'deny').denied, { by: 'policy', policies: ['policies[0]'] })
  t.same(denialOf('FORBIDDEN', 'allow').denied, { by: 'policy' })
  t.same(denialOf('RATE_LIMITED', 'allow').denied, { by: 'rate_limit' })
})

t.test('a backend that is unreachable is not a denial', async (t) => {
  t.same(denialOf('BACKEND_UNAVAILABLE', 'allow'), { denied: undefined, outcome: 'error' })
})
