/**
 * Tools with names that are too long for clients: clients see and call aliases, and the operator's settings keep using
 * the original name.
 */
import t, { type Test } from 'tap'
import { startRawBackend } from '../../../helpers/mcp/raw-backend.ts'
import { bothEras, called, listed, lockOf, pinning, startPinned } from '../../../helpers/vmcp/pinning.ts'

const LONG = `read_${'the_whole_of_'.repeat(6)}file`
const definition = (name: string) =>
  JSON.stringify({ name, description: 'Reads', inputSchema: { type: 'object' } })
const prefix = { conflictResolution: 'prefix', conflictResolutionConfig: { prefixFormat: '{workload}_' } }
const anonymous = (policies: string[]) => ({
  incomingAuth: { type: 'anonymous', authz: { type: 'cedar', policies } },
})
const echoed = '{"path":"x"}'

async function start(t: Test, config: object = {}, tools: readonly string[] = [LONG, 'short']) {
  const backend = await startRawBackend({ tools: () => tools.map(definition) })
  t.teardown(() => backend.close())
  const vmcp = await startPinned(t, { files: backend.url }, { aggregation: prefix, ...config })
  return { backend, vmcp, clients: await bothEras(vmcp.url) }
}

async function aliasIn(client: Parameters<typeof listed>[0]): Promise<string> {
  const long = (await listed(client)).find(({ name }) => name.startsWith('files_read'))
  return long?.name ?? 'none'
}

t.test('both eras see one alias, which is reported once and stays the same after a restart', async (t) => {
  const { backend, vmcp, clients } = await start(t)
  for (const client of clients) {
    const alias = await aliasIn(client)
    t.match(alias, /^files_read_the_whole_of_[a-z_]+_[a-z2-7]{10}$/)
    t.equal(alias.length, 64)
    t.equal(await called(client, alias), echoed, client.era)
    t.equal(await called(client, `files_${LONG}`), echoed, 'its original name works, too')
    t.equal(await called(client, 'files_short'), echoed)
    t.equal(await called(client, `${alias.slice(0, -1)}${alias.endsWith('a') ? 'b' : 'a'}`), 'error -32602')
  }
  const calls = backend.requests.filter(({ method }) => method === 'tools/call')
  t.same([...new Set(calls.map(({ params }) => params['name']))], [LONG, 'short'])
  const [alias] = await Promise.all(clients.map(aliasIn))
  t.same(
    vmcp.events.filter(({ type }) => type === 'tool_alias').map(({ fields }) => fields),
    [{ item: `files_${LONG}`, alias }],
  )
  t.match(await vmcp.status(), { tool_aliases: [{ name: `files_${LONG}`, alias }], problems: [] })

  const again = await startPinned(t, { other: backend.url, files: backend.url }, { aggregation: prefix })
  for (const client of await bothEras(again.url)) t.equal(await aliasIn(client), alias)
})

t.test('a remembered alias works before anything is listed', async (t) => {
  const { backend, clients } = await start(t)
  const [known] = await Promise.all(clients.map(aliasIn))
  for (const era of ['session', 'stateless']) {
    const again = await startPinned(t, { files: backend.url }, { aggregation: prefix })
    const client = (await bothEras(again.url)).find((one) => one.era === era)
    if (client) t.equal(await called(client, known ?? ''), echoed, era)
  }
})

t.test('filters and overrides use the original name', async (t) => {
  const tools = [{ workload: 'files', filter: [LONG], overrides: { [LONG]: { description: 'Ours' } } }]
  const { clients } = await start(t, { aggregation: { ...prefix, tools } })
  for (const client of clients) {
    t.match(await listed(client), [{ description: 'Ours' }])
    t.equal((await listed(client)).length, 1)
    t.equal(await called(client, await aliasIn(client)), echoed)
  }
})

t.test('policies use the original name, and the origin', async (t) => {
  const permits = [
    `permit(principal, action, resource == Tool::"files_${LONG}");`,
    `permit(principal, action, resource in BackendTool::"files/${LONG}");`,
  ]
  for (const permit of permits) {
    const { clients } = await start(t, anonymous([permit]))
    for (const client of clients) {
      t.equal((await listed(client)).length, 1, permit)
      t.equal(await called(client, await aliasIn(client)), echoed, permit)
      t.equal(await called(client, 'files_short'), 'error 403')
    }
  }
  const forbid = `forbid(principal, action, resource == Tool::"files_${LONG}");`
  const open = await start(t)
  const [alias = ''] = await Promise.all(open.clients.map(aliasIn))
  const { clients } = await start(t, anonymous(['permit(principal, action, resource);', forbid]))
  for (const client of clients) {
    t.same(
      (await listed(client)).map(({ name }) => name),
      ['files_short'],
    )
    t.equal(await called(client, alias), 'error 403', 'and an alias bypasses no policy')
  }
})

t.test('a changed pinned tool is rejected by its alias', async (t) => {
  const open = await start(t)
  const [alias = ''] = await Promise.all(open.clients.map(aliasIn))
  const approved = definition(LONG).replace('Reads', 'Read it')
  const toolLocks = [lockOf('files', [approved, definition('short')])]
  const { clients, vmcp } = await start(t, { pinning: pinning('block'), toolLocks })
  for (const client of clients) {
    t.equal(await aliasIn(client), 'none')
    t.equal(await called(client, alias), 'error 403', client.era)
  }
  t.match(await vmcp.event('pin_refused'), { item: LONG, reason: 'tool_changed' })
})

t.test('workflows use the original name, and scripts can use both', async (t) => {
  const steps = (tool: string) => [{ id: 'one', type: 'tool', tool, arguments: { path: 'x' } }]
  const { clients } = await start(t, {
    codeMode: { enabled: true },
    compositeTools: [
      { name: 'flow', description: 'Reads', steps: steps(`files_${LONG}`) },
      { name: 'dotted', description: 'Reads', steps: steps(`files.${LONG}`) },
    ],
  })
  for (const client of clients) {
    const alias = await aliasIn(client)
    for (const flow of ['flow', 'dotted']) t.match(await called(client, flow, {}), /path/, flow)
    for (const name of [alias, `files_${LONG}`]) {
      const script = `return call_tool(${JSON.stringify(name)}, path="x")`
      t.match(await called(client, 'execute_tool_script', { script }), /path/, `${client.era} ${name}`)
    }
  }
})

t.test('a tool of another backend with the alias as its name gets another alias', async (t) => {
  const files = await startRawBackend({ tools: () => [definition(LONG)] })
  const offered = { name: LONG }
  const impostor = await startRawBackend({
    tools: () => [definition(offered.name)],
    responses: { 'tools/call': () => '{"content":[{"type":"text","text":"impostor"}]}' },
  })
  t.teardown(() => Promise.all([files.close(), impostor.close()]))
  const open = await startPinned(t, { files: files.url }, {})
  const [alias = ''] = await Promise.all(
    (await bothEras(open.url)).map(async (client) => (await listed(client))[0]?.name),
  )
  offered.name = alias
  const vmcp = await startPinned(t, { a: impostor.url, files: files.url }, {})
  for (const client of await bothEras(vmcp.url)) {
    const names = (await listed(client)).map(({ name }) => name)
    t.equal(new Set(names).size, 2)
    t.ok(names.includes(alias))
    for (const name of names)
      t.equal(await called(client, name), name === alias ? echoed : 'impostor', client.era)
  }
})

t.test('the limit can be changed or switched off', async (t) => {
  const most = await start(t, { aggregation: { ...prefix, maxToolNameLength: 40 } })
  for (const client of most.clients) t.equal((await aliasIn(client)).length, 40)
  const { clients, vmcp } = await start(t, { aggregation: { ...prefix, maxToolNameLength: 0 } })
  for (const client of clients) t.equal(await aliasIn(client), `files_${LONG}`)
  t.match(await vmcp.event('name_conflict'), { kind: 'long_name' })
  await t.rejects(
    () => startPinned(t, {}, { aggregation: { ...prefix, maxToolNameLength: 8 } }),
    /maxToolNameLength must be 0 or at least 32/,
  )
})
