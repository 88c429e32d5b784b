/** `gatehouse policy replay` as a command, on the audit log of a real server. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { runGatehouse } from '../../helpers/gatehouse.ts'
import { startRawBackend } from '../../helpers/mcp/raw-backend.ts'
import { stateless } from '../../helpers/mcp/wire.ts'
import { startTestVmcp } from '../../helpers/vmcp/vmcp.ts'

t.test('replay: works on the audit log of a server', async (t) => {
  const backend = await startRawBackend({
    tools: () =>
      ['search', 'delete'].map((name) => JSON.stringify({ name, inputSchema: { type: 'object' } })),
    responses: { 'tools/call': () => '{"content":[]}' },
  })
  const folder = t.testdir({})
  const logFile = join(folder, 'audit.log')
  const old = ['permit(principal, action, resource) unless { context has arg_days && context.arg_days > 3 };']
  const vmcp = await startTestVmcp(
    { github: backend.url },
    {
      incomingAuth: { type: 'anonymous', authz: { type: 'cedar', policies: old } },
      audit: { enabled: true, logFile, policyInputs: 'read' },
    },
  )
  t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
  await stateless(vmcp.url, 'tools/list')
  for (const [name, args] of [
    ['github_search', { days: 9 }],
    ['github_search', { days: 2 }],
    ['github_delete', {}],
  ] as const)
    await stateless(vmcp.url, 'tools/call', { name, arguments: args })
  await vmcp.close()

  const same = join(folder, 'same.yaml')
  writeFileSync(same, JSON.stringify({ policies: old }))
  const replay = (file: string, ...more: string[]) =>
    runGatehouse(['policy', 'replay', '--audit', logFile, '--new', file, ...more])
  t.match(await replay(same), { code: 0, stdout: /^3 decisions: 3 unchanged, 0 changed, 0 inconclusive/ })
  const forbids = join(folder, 'forbids.yaml')
  writeFileSync(
    forbids,
    JSON.stringify({
      policies: [...old, 'forbid(principal, action, resource in BackendTool::"github/delete");'],
    }),
  )
  const changed = await replay(forbids)
  t.equal(changed.code, 1)
  t.match(changed.stdout, 'anonymous github_delete: allow becomes deny by policies[1]')
  t.equal((await replay(forbids, '--expect', 'policy=policies[1],to=deny')).code, 0, 'this line is expected')
  t.equal((await replay(forbids, '--expect', 'to=allow')).code, 1, 'another is meant')
  const other = join(folder, 'other.yaml')
  writeFileSync(
    other,
    JSON.stringify({ policies: ['permit(principal, action, resource) when { context.arg_force };'] }),
  )
  const unknown = await replay(other)
  t.match(unknown.stdout, /3 inconclusive.*\ninconclusive lines lack: arg_force \(3\)/)
  t.match(await replay(same, '--expect', 'nobody=1'), { code: 2 })
  t.match(await runGatehouse(['policy', 'replay', '--audit', join(folder, 'none.log'), '--new', same]), {
    code: 2,
    stderr: /none.log: cannot be read: file not found/,
  })
  t.match(await runGatehouse(['policy', 'replay', '--audit', folder, '--new', same]), {
    code: 2,
    stderr: /is a folder, not a file/,
  })
  const foreign = join(folder, 'other.log')
  for (const text of ['', 'no audit log\n']) {
    writeFileSync(foreign, text)
    t.match(await runGatehouse(['policy', 'replay', '--audit', foreign, '--new', same]), {
      code: 2,
      stdout: /^0 decisions/,
      stderr: /other\.log: no line contains a decision/,
    })
  }
})
