/** The questions of a task, and the waits for them. */
import t from 'tap'
import { Questions } from '../../../../runtime/vmcp/features/tasks/held-inputs.ts'

/** Longer than the timeout of this file. */
const longMs = 600_000
const ask = { method: 'elicitation/create', params: Buffer.from('{"message":"Name?"}') }

await t.test('questions: a new question ends every wait', async (t) => {
  const questions = new Questions()
  const waits = [questions.waitForQuestion(longMs), questions.waitForChange(longMs)]
  const answer = questions.ask(ask, undefined)
  await Promise.all(waits)
  await questions.waitForQuestion(longMs)
  const [[key] = ['']] = questions.entries()
  questions.answer(key, { result: Buffer.from('{}') })
  t.same(await answer, { result: Buffer.from('{}') })
})

await t.test('questions: the end of the task ends all waits, including later ones', async () => {
  const questions = new Questions()
  const waits = [questions.waitForQuestion(longMs), questions.waitForChange(longMs)]
  questions.end()
  await Promise.all([...waits, questions.waitForChange(longMs), questions.waitForQuestion(longMs)])
})

await t.test('questions: a wait ends after its time', async () => {
  await new Questions().waitForChange(1)
})

await t.test('questions: a signal withdraws a question, even before it is asked', async (t) => {
  const questions = new Questions()
  const controller = new AbortController()
  const answer = questions.ask(ask, controller.signal)
  controller.abort()
  await t.rejects(answer, { message: 'the question was withdrawn' })
  await t.rejects(questions.ask(ask, controller.signal), { message: 'the question was withdrawn' })
  t.same(questions.entries(), [])
})
