/** The workflows of manifests/examples/workflows and of the guide behave as described. */
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import t from 'tap'
import { parse, parseAllDocuments } from 'yaml'
import { withDefaults } from '../../../../schemas/index.ts'
import { outcome, reply, rig, toolEntry, workflow } from '../../../helpers/vmcp/workflow-rig.ts'

const file = resolve(import.meta.dirname, '../../../../manifests/examples/workflows/virtual-server.yaml')
const manifests: { kind: string }[] = parseAllDocuments(readFileSync(file, 'utf8')).map((one) => one.toJS())
const server = manifests.find(({ kind }) => kind === 'VirtualMCPServer')
const [definition] = withDefaults({ ...server, kind: 'VirtualMCPServer' }).spec.config?.compositeTools ?? []

const tools = [
  toolEntry('tickets_search', {
    inputSchema: { type: 'object', properties: { idleDays: { type: 'integer' } } },
  }),
  toolEntry('tickets_close', {
    inputSchema: { type: 'object', properties: { id: { type: 'integer' }, notify: { type: 'boolean' } } },
  }),
  toolEntry('people_team_lead', { backend: 'people', original: 'team_lead', base: 'team_lead' }),
]
const start = async (tickets: object[], response: object) => {
  if (!definition) throw new Error('no workflow')
  return rig(definition, {
    tools,
    ask: () => reply(response),
    response({ tool, args }) {
      if (tool === 'tickets_search') return { tickets }
      const fails = tool === 'people_team_lead' || args['id'] === 2
      return fails ? outcome({ isError: true, content: [] }) : { done: true }
    },
  })
}
const stale = [1, 2, 3].map((id) => ({ id }))

t.test('example: after the user accepts, tickets are closed, and a failed one is listed', async (t) => {
  const r = await start(stale, { action: 'accept', content: { reason: 'Too old' } })
  const { structured } = await r.run({ team: 'a' })
  t.strictSame(structured, { found: 3, closed: 2, failed: [2] })
  t.match(r.questions, [{ message: 'Close 3 tickets of the team?' }])
  t.match(r.calls[0]?.args, { team: 'a', idleDays: 30, status: ['open', 'waiting'] })
  t.match(r.calls.at(-1)?.args, { id: 3, comment: 'Too old', notify: true })
})

t.test('example: after the user declines, no ticket is closed', async (t) => {
  const r = await start(stale, { action: 'decline' })
  t.strictSame((await r.run({ team: 'a' })).structured, { found: 3, closed: 0, failed: [] })
})

t.test('example: without tickets, the user is not asked', async (t) => {
  const r = await start([], {})
  t.strictSame((await r.run({ team: 'a' })).structured, { found: 0, closed: 0, failed: [] })
  t.strictSame(r.questions, [])
})

t.test('guide: the example is valid and works', async (t) => {
  const guide = readFileSync(resolve(import.meta.dirname, '../../../../docs/guides/workflows.md'), 'utf8')
  const block = guide.slice(guide.indexOf('    compositeTools:'), guide.indexOf('\n\nDefine workflows in'))
  const { compositeTools }: { compositeTools: object[] } = parse(block)
  const tools = ['search_issues', 'create_issue'].map((original) =>
    toolEntry(`github_${original}`, { backend: 'github', original, base: original }),
  )
  const items: object[] = []
  const r = await rig(workflow(compositeTools[0] ?? {}), {
    tools,
    response: ({ tool }) => (tool === 'github_search_issues' ? { items } : { url: 'https://example.com/1' }),
  })
  t.strictSame((await r.run({ title: 'It broke' })).structured, { url: 'https://example.com/1' })
  items.push({})
  t.strictSame((await r.run({ title: 'It broke' })).structured, { url: '' })
})
