/** MCP Apps together with policies, tool search, scripts and workflows. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { page } from '../../../helpers/mcp/app-server.ts'
import { stateless } from '../../../helpers/mcp/wire.ts'
import { startTestVmcp } from '../../../helpers/vmcp/vmcp.ts'
import {
  capabilities,
  clientOf,
  eras,
  type Fields,
  memberOf,
  names,
  resultOf,
  startPair,
  startClock,
  uri,
} from './clock-servers.ts'

await t.test('apps: policies decide on real names and addresses', async (t) => {
  const policies = [
    'permit(principal, action == Action::"call_tool", resource == Tool::"alpha_alpha-only");',
    'permit(principal, action == Action::"call_tool", resource == Tool::"alpha_show");',
    'permit(principal, action == Action::"call_tool", resource == Tool::"beta_show");',
    'permit(principal, action == Action::"read_resource", resource == Resource::"ui://alpha/clock/view.html");',
  ]
  const authz = { type: 'cedar', policies, entitiesJson: '[]' }
  const { url, close } = await startPair('session', { incomingAuth: { type: 'anonymous', authz } })
  t.teardown(close)
  for (const era of eras) {
    const request = await clientOf(era, url)
    const tools = await names(request)
    t.same(
      tools.map(({ name, _meta }) => [name, memberOf(_meta, 'ui', 'resourceUri')] as unknown),
      [
        ['alpha_alpha-only', undefined],
        ['alpha-only', undefined],
        ['alpha_show', 'ui://alpha/clock/view.html'],
        ['beta_show', undefined],
      ],
      'a page that the caller may not read is not named',
    )
    t.match((await request('tools/call', { name: 'alpha-only', arguments: {} }))?.result, { content: [{}] })
    t.match((await request('tools/call', { name: 'refresh', arguments: {} }))?.error, {
      code: -32602,
      message: /tool "refresh" not found/,
    })
    t.ok((await request('resources/read', { uri: 'ui://beta/clock/view.html' }))?.error)
    t.ok(
      (await request('tools/call', { name: 'beta-only', arguments: {} }))?.error,
      'denied by its real name',
    )
  }
})

await t.test('apps: a policy can deny tools that only apps use', async (t) => {
  const policies = [
    'permit(principal, action, resource);',
    'forbid(principal, action == Action::"call_tool", resource) when { resource has appOnly && resource.appOnly };',
  ]
  for (const apps of [{}, { enabled: false }]) {
    const authz = { type: 'cedar', policies, entitiesJson: '[]' }
    const more = { incomingAuth: { type: 'anonymous', authz }, extensions: { apps } }
    const { url, close } = await startPair('session', more)
    t.teardown(close)
    const request = await clientOf('session', url)
    t.notOk((await names(request)).some(({ name }) => name === 'alpha_refresh'))
    t.match((await request('tools/call', { name: 'alpha_refresh', arguments: {} }))?.error, {
      message: /call denied by authorization policy/,
    })
    t.match((await request('tools/call', { name: 'alpha_show', arguments: {} }))?.result, { content: [{}] })
  }
})

await t.test('apps: tool search lists tools with pages, and finds no tools that only apps use', async (t) => {
  const { url, close } = await startPair('session', { optimizer: {} })
  t.teardown(close)
  for (const era of eras) {
    const request = await clientOf(era, url)
    t.same(
      (await names(request)).map(({ name }) => name as string),
      ['find_tool', 'call_tool', 'alpha_refresh', 'alpha_show', 'beta_refresh', 'beta_show'],
    )
    t.same(
      (await names(await clientOf(era, url, {}))).map(({ name }) => name as string),
      ['find_tool', 'call_tool'],
    )
    const found = await resultOf(request, 'tools/call', {
      name: 'find_tool',
      arguments: { tool_description: 'refresh show only', tool_keywords: ['refresh', 'show', 'only'] },
    })
    const tools = (found['structuredContent'] as Fields)['tools'] as Fields[]
    t.ok(tools.some(({ name }) => name === 'alpha_alpha-only'))
    t.notOk(tools.some(({ name }) => String(name).endsWith('refresh')))
    for (const name of ['alpha_show', 'alpha-only', 'alpha_refresh'])
      t.match((await request('tools/call', { name, arguments: {} }))?.result, { content: [{}] }, name)
    const plain = await clientOf(era, url, {})
    t.ok(
      (await plain('tools/call', { name: 'alpha_show', arguments: {} }))?.error,
      'other clients must search',
    )
  }
})

await t.test('apps: scripts cannot use tools that only apps use, but workflows can', async (t) => {
  const workflow = {
    name: 'both',
    description: 'x',
    parameters: { type: 'object' },
    steps: [{ id: 'a', type: 'tool', tool: 'alpha.refresh', arguments: {} }],
    output: { properties: { link: { type: 'string', value: '{{.steps.a.output.text}}' } } },
  }
  const { url, close } = await startPair('session', {
    codeMode: { enabled: true },
    compositeTools: [workflow],
  })
  t.teardown(close)
  const request = await clientOf('session', url)
  const run = async (script: string) =>
    JSON.stringify(
      (await request('tools/call', { name: 'execute_tool_script', arguments: { script } }))?.result,
    )
  t.match(await run('return alpha_show()'), /ui:\/\/alpha\/clock/)
  t.match(await run('return alpha_refresh()'), /undefined|not defined|unknown/)
  t.match(
    JSON.stringify((await request('tools/call', { name: 'both', arguments: {} }))?.result),
    /refresh of alpha/,
  )
})

await t.test('apps: a page that differs from its lock is refused', async (t) => {
  const html = '<p>alpha: ui://clock/view.html</p>'
  const digest = `sha256:${createHash('sha256').update(html).digest('hex')}`
  const tools = [
    ...['refresh', 'show', 'alpha-only'].map((name) => ({ name, definition: `{"name":"${name}"}` })),
  ]
  for (const [pages, more, changed, added] of [
    [[{ uri, digest }], {}, false, false],
    [[{ uri, digest }], { onChanged: 'observe', onNew: 'observe' }, true, true],
    [[], {}, false, false],
    [undefined, {}, true, true],
  ] as const) {
    const alpha = await startClock('alpha', 'session')
    const lock = { backend: 'alpha', tools, pages, ...more }
    const settings = { pinning: { onNew: 'block' }, toolLocks: [lock] }
    const vmcp = await startTestVmcp({ alpha: alpha.url }, settings)
    t.teardown(() => Promise.all([vmcp.close(), alpha.close()]))
    const read = async (address: string) =>
      (await stateless(vmcp.url, 'resources/read', { uri: address }, { capabilities })).response?.error ===
      undefined
    t.equal(await read(uri), pages?.length !== 0, 'unchanged')
    alpha.contents[uri] = page(uri, html.replace('clock', 'evil'))
    t.equal(await read(uri), changed, 'changed')
    alpha.contents[uri] = { ...page(uri, html), blob: 'PGI+' }
    t.equal(await read(uri), changed, 'a second form of the content')
    t.equal(await read('ui://unlisted/x'), added, 'not in the lock')
  }
})

await t.test('apps: the audit log contains the name of the tool in the catalog', async (t) => {
  const logFile = join(t.testdir({}), 'audit.log')
  const { url, close } = await startPair('session', { audit: { enabled: true, logFile } })
  for (const era of eras)
    await (await clientOf(era, url))('tools/call', { name: 'alpha-only', arguments: {} })
  await close()
  const lines = readFileSync(logFile, 'utf8').trim().split('\n')
  const calls = lines.map((line) => JSON.parse(line) as Fields).filter(({ type }) => type === 'mcp_tool_call')
  t.same(
    calls.map(({ target }) => memberOf(target, 'name')),
    ['alpha_alpha-only', 'alpha_alpha-only'],
  )
})
