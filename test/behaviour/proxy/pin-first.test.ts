/**
 * `--pin-first` of `gatehouse proxy`, `vmcp serve` and `dev`: the first listed definitions are written to a file and
 * enforced.
 */
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { validateResource } from '../../../hooks/index.ts'
import { group, manifest, startDev, virtualServer } from '../../helpers/dev-rig.ts'
import { type RunningGatehouse, runGatehouse, startGatehouse } from '../../helpers/gatehouse.ts'
import {
  approved,
  bothEras,
  called,
  changed,
  listed,
  other,
  startChanging,
} from '../../helpers/vmcp/pinning.ts'

t.setTimeout(180_000)

function folderOf(t: Test): string {
  const path = mkdtempSync(join(tmpdir(), 'gatehouse-pin-first-'))
  t.teardown(() => rmSync(path, { recursive: true, force: true }))
  return path
}

async function names(url: string): Promise<string[][]> {
  const lists = await Promise.all((await bothEras(url)).map(listed))
  return lists.map((tools) => tools.map(({ name }) => name).sort())
}

async function ended({ child }: RunningGatehouse): Promise<number | null> {
  if (child.exitCode === null) await once(child, 'close')
  return child.exitCode
}

t.test('proxy: the file is written at the first use, and enforced at the next start', async (t) => {
  const backend = await startChanging(t, [approved])
  const file = join(folderOf(t), 'notes.lock.yaml')
  const start = async () => {
    const args = ['--target-uri', new URL(backend.url).origin, '--port', '0', '--pin-first', file]
    const run = startGatehouse(['proxy', ...args, 'notes'])
    t.teardown(() => run.interrupt())
    const [, port] = await run.waitFor(/started for server notes on port (\d+)/)
    return { run, url: `http://127.0.0.1:${port}/mcp` }
  }
  const first = await start()
  t.notOk(existsSync(file))
  t.same(await names(first.url), [['read'], ['read']])
  t.match(readFileSync(file, 'utf8'), /kind: Backend\n\s+name: notes/)
  await first.run.waitFor(/tool_lock_written/)
  await first.run.interrupt()
  backend.tools = [changed(approved, { name: 'steal' })]
  const second = await start()
  t.same(await names(second.url), [[], []])
  for (const client of await bothEras(second.url)) t.equal(await called(client, 'steal'), 'error 403')
  await second.run.interrupt()

  writeFileSync(file, 'kind: Other\napiVersion: v1\n')
  const args = ['proxy', '--target-uri', 'http://127.0.0.1:9', '--pin-first', file]
  const foreign = startGatehouse([...args, 'notes'])
  t.equal(await ended(foreign), 2)
  t.match(foreign.output(), /is not an MCPToolLock and was not overwritten/)
  const both = startGatehouse([...args, '--tool-lock', file, 'notes'])
  t.equal(await ended(both), 2)
  t.match(both.output(), /--pin-first: cannot be combined with --tool-lock/)
})

t.test('vmcp serve: one file for each backend, and a file with noLock pin requires the flag', async (t) => {
  const [files, notes] = [await startChanging(t, [approved]), await startChanging(t, [other])]
  const folder = folderOf(t)
  const locks = join(folder, 'locks')
  const backends = ['--backend', `files=${files.url}`, '--backend', `notes=${notes.url}`]
  const run = startGatehouse([
    'vmcp',
    'serve',
    '--group',
    'g',
    ...backends,
    '--port',
    '0',
    '--pin-first',
    locks,
  ])
  t.teardown(() => run.interrupt())
  const [, url = ''] = await run.waitFor(/(http:\/\/127\.0\.0\.1:\d+\/mcp)/)
  t.same(await names(url), [
    ['files_read', 'notes_list'],
    ['files_read', 'notes_list'],
  ])
  for (const name of ['files', 'notes']) t.ok(existsSync(join(locks, `${name}.lock.yaml`)), name)

  const config = join(folder, 'vmcp.json')
  writeFileSync(
    config,
    JSON.stringify({
      name: 'v',
      groupRef: 'g',
      incomingAuth: { type: 'anonymous' },
      outgoingAuth: { source: 'inline' },
      aggregation: {},
      backends: [{ name: 'files', url: files.url, transport: 'streamable-http' }],
      pinning: { noLock: 'pin' },
    }),
  )
  const { code, stderr } = await runGatehouse(['vmcp', 'serve', '--config', config, '--port', '0'])
  t.equal(code, 2)
  t.match(stderr, /pinning\.noLock: pin requires a folder for locks on this machine/)
})

t.test('dev: the locks have the kinds of the manifests', async (t) => {
  const backend = await startChanging(t, [approved])
  const folder = folderOf(t)
  const entry = manifest('MCPServerEntry', 'files', {
    groupRef: { name: 'g' },
    remoteUrl: backend.url,
    transport: 'streamable-http',
  })
  const { dev, port } = await startDev(t, [group(), entry, virtualServer()], {
    args: ['--pin-first', folder],
  })
  await dev.waitFor(/^VirtualMCPServer v: ready/m)
  const url = `http://127.0.0.1:${port}/mcp`
  t.same(await names(url), [['files_read'], ['files_read']])
  t.match(readFileSync(join(folder, 'files.lock.yaml'), 'utf8'), /kind: MCPServerEntry\n\s+name: files/)
})

t.test('dev: backends with the same name in two namespaces have separate locks', async (t) => {
  const folder = folderOf(t)
  const inNamespace = (namespace: string, text: string) => {
    const doc = JSON.parse(text) as { metadata: object }
    return JSON.stringify({ ...doc, metadata: { ...doc.metadata, namespace } })
  }
  const server = async (tool: string, name: string) => {
    const { url: remoteUrl } = await startChanging(t, [tool])
    const entry = manifest('MCPServerEntry', 'files', {
      groupRef: { name: 'g' },
      remoteUrl,
      transport: 'streamable-http',
    })
    return [group(), entry, virtualServer(name)]
  }
  const there = (await server(other, 'w')).map((text) => inNamespace('team', text))
  const { dev } = await startDev(t, [...(await server(approved, 'v')), ...there], {
    args: ['--pin-first', folder],
  })
  const urls = await Promise.all(
    ['v', 'w'].map(async (name) => {
      const [, url = ''] = await dev.waitFor(new RegExp(`^\\s*${name}: ready at (\\S+)`, 'm'))
      return url
    }),
  )
  t.same(await Promise.all(urls.map(async (url) => (await names(url))[0])), [['files_read'], ['files_list']])
  for (const path of ['files.lock.yaml', 'team/files.lock.yaml']) t.ok(existsSync(join(folder, path)), path)
})

t.test('a cluster has no such folder, so admission rejects it', async (t) => {
  const { violations } = validateResource(
    JSON.parse(
      manifest('VirtualMCPServer', 'v', {
        groupRef: { name: 'g' },
        incomingAuth: { type: 'anonymous' },
        config: { pinning: { noLock: 'pin' } },
      }),
    ),
  )
  t.match(violations, [{ path: 'spec.config.pinning.noLock', message: /must be allow or block/ }])
})
