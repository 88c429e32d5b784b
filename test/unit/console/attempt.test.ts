/** The events of one tool call in the console: questions are bounded, and withdrawn questions do not remain. */
import t from 'tap'
import { Attempt } from '../../../runtime/console/tries/attempt.ts'
import type { ConsoleView } from '../../../runtime/console/view.ts'
import type { DirectCall } from '../../../runtime/mcp/index.ts'
import { anonymousCaller } from '../../../runtime/incoming/index.ts'
import type { Visitor } from '../../../runtime/console/access/visitor.ts'

function attempt(call: (call: DirectCall) => Promise<unknown>): Attempt {
  const view = { call } as unknown as ConsoleView
  const visitor = { caller: anonymousCaller() } as unknown as Visitor
  return new Attempt(view, visitor, { name: 'x', arguments: '{}', era: '2025-11-25' }, () => {})
}

const question = (params: object) => ({
  method: 'elicitation/create' as const,
  params: Buffer.from(JSON.stringify(params)),
})

t.test('a question whose schema or address is too large is rejected', async (t) => {
  for (const params of [
    { message: 'm', requestedSchema: { type: 'object', title: 'x'.repeat(70_000), properties: {} } },
    { mode: 'url', message: 'm', url: `https://example.com/${'x'.repeat(9_000)}` },
  ]) {
    const signal = new AbortController().signal
    const one = attempt(({ ask }) => ask(question(params), signal))
    await one.ended
    t.match(one.take(), { type: 'done', error: { message: /at most/ } })
  }
})

t.test('withdrawn questions do not accumulate', async (t) => {
  const one = attempt(async ({ ask }) => {
    for (let i = 0; i < 1_000; i++) {
      const withdrawn = new AbortController()
      const asked = ask(question({ message: `m${i}`, requestedSchema: {} }), withdrawn.signal)
      withdrawn.abort()
      await asked.catch(() => {})
    }
    throw new Error('over')
  })
  await one.ended
  t.match(one.take(), { type: 'done' })
  t.equal(one.take(), undefined)
})
