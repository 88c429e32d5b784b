/** Pages that differ from their locks: reported in every mode, and refused by freeze and block. */
import { createHash } from 'node:crypto'
import t from 'tap'
import { makeEvents } from '../../../../runtime/observe/index.ts'
import { page, startAppServer } from '../../../helpers/mcp/app-server.ts'
import { startTestVmcp, vmcpConfig } from '../../../helpers/vmcp/vmcp.ts'
import { clientOf, eras, type Fields, memberOf, uri } from './clock-servers.ts'

const approved = '<p>approved</p>'
const digest = `sha256:${createHash('sha256').update(approved).digest('hex')}`
const lock = { backend: 'clock', pages: [{ uri, digest }] }

for (const era of eras)
  for (const onChanged of ['observe', 'warn', 'freeze', 'block'])
    t.test(`page locks: a changed page, ${onChanged}, ${era} era`, async (t) => {
      const clock = await startAppServer({
        name: 'clock',
        era,
        tools: [{ name: 'show', _meta: { ui: { resourceUri: uri } } }],
        contents: { [uri]: page(uri, approved), 'ui://clock/other': page('ui://clock/other', 'other') },
      })
      t.teardown(() => clock.close())
      const events = makeEvents()
      const emitted: Fields[] = []
      events.listen(({ type, fields }) => {
        if (type === 'pages_drifted') emitted.push({ ...fields })
      })
      const backends = { clock: clock.url }
      const telemetry = { enablePrometheusMetricsPath: true }
      const more = {
        telemetry,
        pinning: { onChanged, onNew: 'observe', onRemoved: 'observe' },
        toolLocks: [lock],
      }
      const vmcp = await startTestVmcp(backends, more, { events })
      t.teardown(() => vmcp.close())
      const request = await clientOf(era, vmcp.url)
      const read = async (address: string) =>
        memberOf(await request('resources/read', { uri: address }), 'result', 'contents', 0, 'text')
      const status = async () => (await (await fetch(new URL('/status', vmcp.url))).json()) as Fields
      const pages = async () => memberOf(await status(), 'backends', 0, 'pinning', 'pages')

      t.equal(await read(uri), approved)
      t.same(await pages(), { changed: 0, new: 0, drift: [] })
      t.same(emitted, [])
      clock.contents[uri] = page(uri, '<p>changed</p>')
      t.equal(await read(uri), ['freeze', 'block'].includes(onChanged) ? undefined : '<p>changed</p>')
      await read('ui://clock/other')
      t.same(await pages(), {
        changed: 1,
        new: 1,
        drift: [
          { page: 'ui://clock/other', state: 'new' },
          { page: uri, state: 'changed' },
        ],
      })
      const problems = JSON.stringify((await status())['problem_details'])
      t.match(problems, /pages of backend clock differ from its lock: 1 changed, 1 new/)
      t.match(emitted.at(-1), { backend: 'clock', changed: 1, new: 1, quiet: onChanged === 'observe' })
      const metrics = await (await fetch(new URL('/metrics', vmcp.url))).text()
      t.match(
        metrics,
        /gatehouse_vmcp_drifted_pages\{[^}]*target_workload_name="clock"[^}]*state="changed"[^}]*\} 1/,
      )

      vmcp.reload(vmcpConfig(backends, more))
      t.match(await pages(), { changed: 1 }, 'a reload with the same lock keeps the report')
      await read(uri)
      vmcp.reload(vmcpConfig(backends, { ...more, extensions: { apps: { enabled: false } } }))
      t.equal(await pages(), undefined)
      vmcp.reload(vmcpConfig(backends, more))
      await read(uri)
      t.match(await pages(), { changed: 1 })
      vmcp.reload(vmcpConfig(backends, { ...more, toolLocks: [{ ...lock, pages: [] }] }))
      t.match(await pages(), { changed: 0, new: 0 }, 'a changed lock is compared again')
      t.notMatch(JSON.stringify((await status())['problem_details']), /pages of backend/)
      vmcp.reload(vmcpConfig(backends, { telemetry }))
      t.equal(await pages(), undefined)
    })
