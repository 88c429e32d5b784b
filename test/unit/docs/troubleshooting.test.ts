/** The table of reasons, from which the troubleshooting page is generated, and the hooks speak of the same reasons. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { conditionReasons, plainReason, podReasons, reasonRow } from '../../../schemas/reasons/index.ts'

const listed = new Set(conditionReasons.flatMap(({ reasons }) => reasons))

const sources = readdirSync('hooks', { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts') && !name.startsWith('certificates'))
  .map((name) => readFileSync(join('hooks', name), 'utf8'))
  .join('\n')

t.test('troubleshooting: every reason of the page is one that the hooks give', async (t) => {
  t.ok(listed.size > 40)
  for (const reason of listed) t.ok(sources.includes(`'${reason}'`), reason)
})

t.test('troubleshooting: every reason that the hooks give for an error is on the page', async (t) => {
  const violations = [...sources.matchAll(/reason: '([A-Za-z]+)'/g)].map((match) => match[1] ?? '')
  // Phases and successes share the form; what is left is an error.
  const fine =
    /^(Ready|NotReady|.*(Valid|Succeeded|Configured|NotConfigured|NotApplicable|NotActive|Routable|Pending|Unhealthy|Synthesized|Discovered|Unavailable|Degraded|Overridden|Manual|Deprecated|Ignored|AutoSelected|WithoutUserInfo|Unique))$/
  for (const reason of new Set(violations)) if (!fine.test(reason)) t.ok(listed.has(reason), reason)
})

t.test('troubleshooting: no reason has two lines, and each has a meaning and a next step', async (t) => {
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
