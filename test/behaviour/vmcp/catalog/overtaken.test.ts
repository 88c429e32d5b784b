/** A backend changes again while a list waits for another backend. The outdated list is not shown afterwards. */
import t from 'tap'
import { startRawBackend } from '../../../helpers/mcp/raw-backend.ts'
import { stateless } from '../../../helpers/mcp/wire.ts'
import { until } from '../../../helpers/redis.ts'
import { startTestVmcp } from '../../../helpers/vmcp/vmcp.ts'

const listChanged = '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'
const tool = (description: string) =>
  JSON.stringify({ name: 'read', description, inputSchema: { type: 'object' } })

t.test('a change while the list waits for another backend', async (t) => {
  const state = { description: 'before', gate: Promise.resolve() }
  const quick = await startRawBackend({ tools: () => [tool(state.description)] })
  const slow = await startRawBackend({
    responses: {
      'tools/list': async () => {
        await state.gate
        return `{"tools":[${tool('slow')}]}`
      },
    },
  })
  const vmcp = await startTestVmcp({ quick: quick.url, slow: slow.url })
  t.teardown(() => Promise.all([vmcp.close(), quick.close(), slow.close()]))
  const list = async () => (await stateless(vmcp.url, 'tools/list')).text
  const lists = ({ requests }: typeof quick) =>
    requests.filter(({ method }) => method === 'tools/list').length
  t.match(await list(), /before/)
  await until(() => quick.streams.size > 0 && slow.streams.size > 0)

  let open = (): void => {}
  state.gate = new Promise((resolve) => (open = resolve))
  const waiting: Promise<string>[] = []
  for (const asked = lists(slow); lists(slow) === asked; ) {
    slow.push(listChanged)
    waiting.push(list())
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  state.description = 'after'
  for (const asked = lists(quick); lists(quick) === asked; ) {
    quick.push(listChanged)
    await stateless(vmcp.url, 'tools/call', { name: 'quick_read', arguments: {} })
  }
  open()
  await Promise.all(waiting)
  t.match(await list(), /after/)
})
