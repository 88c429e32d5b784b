/**
 * A reload that fails after its checks have passed: requests pass through the new guards, never through closed ones.
 */
import t from 'tap'
import { type Events, makeEvents } from '../../../runtime/observe/index.ts'
import { startTokenIssuer } from '../../helpers/authserver/token-issuer.ts'
import { startRawBackend } from '../../helpers/mcp/raw-backend.ts'
import { openSession } from '../../helpers/mcp/wire.ts'
import { bareNames, startTestVmcp, vmcpConfig } from '../../helpers/vmcp/vmcp.ts'

t.test('reload: when the backends cannot be replaced, requests pass through the new guards', async (t) => {
  const [issuer, backend] = await Promise.all([startTokenIssuer(), startRawBackend()])
  const made = makeEvents()
  let isBroken = false
  const events: Events = {
    ...made,
    emit(type, fields) {
      if (isBroken && type === 'backends_changed') throw new Error('the step failed')
      made.emit(type, fields)
    },
  }
  const more = (effect: 'permit' | 'forbid') => ({
    aggregation: bareNames('raw', 'other'),
    incomingAuth: {
      ...issuer.incomingAuth,
      authz: { type: 'cedar', policies: [`${effect}(principal, action, resource);`] },
    },
  })
  const vmcp = await startTestVmcp({ raw: backend.url }, more('permit'), { events })
  t.teardown(() => Promise.all([vmcp.close(), backend.close(), issuer.close()]))
  const headers = { authorization: `Bearer ${await issuer.token('ada')}` }
  const session = await openSession(vmcp.url, { headers })
  const call = async () => (await session.request('tools/call', { name: 'echo' })).status
  t.equal(await call(), 200)

  isBroken = true
  const after = vmcpConfig({ raw: backend.url, other: backend.url }, more('forbid'))
  t.throws(() => vmcp.reload(after), { message: 'the step failed' })
  t.equal(await call(), 403)

  isBroken = false
  vmcp.reload(vmcpConfig({ raw: backend.url }, more('permit')))
  t.equal(await call(), 200, 'a later reload takes effect')
})
