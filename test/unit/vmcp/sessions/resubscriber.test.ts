import { setTimeout } from 'node:timers/promises'
import t from 'tap'
import { Resubscriber } from '../../../../runtime/vmcp/clients/session-era/resubscribe.ts'

t.test('a session that is lost time and again is not opened again each time at once', async (t) => {
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
  // Later than all that was begun without a pause.
  await setTimeout(20)
  t.same(subscribed.toSorted(), ['session backend', 'session backend', 'session other'])
})
