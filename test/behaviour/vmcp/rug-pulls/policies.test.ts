/** A tool that pinning rejects is denied, not unknown, also where policies check origins. */
import t from 'tap'
import {
  approved,
  bothEras,
  called,
  changed,
  lockOf,
  pinning,
  startChanging,
  startPinned,
} from '../../../helpers/vmcp/pinning.ts'

t.test('a rejected tool under policies about origins', async (t) => {
  const backend = await startChanging(t, [changed(approved, { title: 'Deletes' })])
  const policies = ['permit(principal, action, resource in Backend::"files");']
  const vmcp = await startPinned(
    t,
    { files: backend.url },
    {
      pinning: pinning('block'),
      toolLocks: [lockOf('files', [approved])],
      incomingAuth: { type: 'anonymous', authz: { type: 'cedar', policies } },
    },
  )
  for (const client of await bothEras(vmcp.url))
    t.equal(await called(client, 'read'), 'error 403', client.era)
  t.ok(
    vmcp.events.some(({ type }) => type === 'pin_refused'),
    'and the reason is reported',
  )
})
