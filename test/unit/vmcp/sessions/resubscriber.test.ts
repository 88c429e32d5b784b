import { setTimeout } from 'node:timers/promises'
import t from 'tap'
import { Resubscriber } from '../../../../runtime/vmcp/clients/session-era/resubscribe.ts'

t.test('a session that is lost repeatedly is reopened with pauses', async (t) => {
  const resubscriber = new Resubscriber()
  const subscribed: string[] = []
  const lose = (key: string) =>
    resubscriber.schedule(key, {
      uris: () => ['test://r'],
      subscribe: async () => subscribed.push(key) > 0,
      onResubscribed: () => {},
      isOver: () => false,
    })
  for (let i = 0; i < 10; i++) lose('session backend')
  lose('session other')
  // Wait longer than any retry without a pause would take.
  await setTimeout(20)
  t.same(subscribed.toSorted(), ['session backend', 'session backend', 'session other'])
})
