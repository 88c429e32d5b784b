/** Names that every JavaScript object has are unknown methods, wherever a method is read. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { openSession, stateless } from '../../helpers/mcp/wire.ts'
import { startRawBackend } from '../../helpers/mcp/raw-backend.ts'
import { startTestVmcp } from '../../helpers/vmcp/vmcp.ts'

const names = Object.getOwnPropertyNames(Object.prototype)
const policies = ['permit(principal, action, resource);']

t.test(
  'a method named like an object member: not found in both eras, audited, and the server keeps running',
  async (t) => {
    const logFile = join(t.testdir({}), 'audit.log')
    const backend = await startRawBackend()
    const vmcp = await startTestVmcp(
      { raw: backend.url },
      {
        audit: { enabled: true, logFile },
        incomingAuth: { type: 'anonymous', authz: { type: 'cedar', policies } },
      },
    )
    t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
    const session = await openSession(vmcp.url)
    for (const name of names) {
      const { response } = await session.request(name)
      t.equal(response?.error?.code, -32601, name)
      const asked = await stateless(vmcp.url, name)
      t.equal(asked.status, 404, name)
      t.equal(asked.response?.error?.code, -32601, name)
      t.notMatch(asked.text, 'native code')
    }
    t.equal((await session.request('ping')).status, 200)
    // Lines are written after the responses.
    await vmcp.close()
    const lines = readFileSync(logFile, 'utf8').trim().split('\n')
    for (const name of names) t.equal(lines.filter((line) => line.includes(`"${name}"`)).length, 2, name)
  },
)
