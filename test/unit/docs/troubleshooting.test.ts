/** The table of reasons, which the troubleshooting page is generated from, matches the reasons in the hooks. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { conditionReasons, plainReason, podReasons, reasonRow } from '../../../schemas/reasons/index.ts'

const listed = new Set(conditionReasons.flatMap(({ reasons }) => reasons))

const sources = readdirSync('hooks', { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts') && !name.startsWith('certificates'))
  .map((name) => readFileSync(join('hooks', name), 'utf8'))
  .join('\n')

t.test('troubleshooting: the hooks set every reason on the page', async (t) => {
  t.ok(listed.size > 40)
  for (const reason of listed) t.ok(sources.includes(`'${reason}'`), reason)
})

t.test('troubleshooting: the page lists every error reason of the hooks', async (t) => {
  const violations = [...sources.matchAll(/reason: '([A-Za-z]+)'/g)].map((match) => match[1] ?? '')
  // Phases and successful reasons have the same form; the rest are errors.
  const fine =
    /^(Ready|NotReady|.*(Valid|Succeeded|Configured|NotConfigured|NotApplicable|NotActive|Routable|Pending|Unhealthy|Synthesized|Discovered|Unavailable|Degraded|Overridden|Manual|Deprecated|Ignored|AutoSelected|WithoutUserInfo|Unique))$/
  for (const reason of new Set(violations)) if (!fine.test(reason)) t.ok(listed.has(reason), reason)
})

t.test('troubleshooting: each reason has one row, with a meaning and a next step', async (t) => {
  const all = [...conditionReasons, ...podReasons]
  const names = all.flatMap(({ reasons }) => reasons)
  t.same(
    names.filter((name, index) => names.indexOf(name) !== index),
    [],
  )
  for (const { reasons, means, step, isWarning } of all) {
    t.ok(means.length > 10, reasons.join())
    t.ok(isWarning || step.length > 10, reasons.join())
  }
  t.equal(reasonRow('NoSuchReason'), undefined)
  t.equal(plainReason('see [redis.md](redis.md), `a`'), 'see docs/guides/redis.md, a')
})
