/** `gatehouse dev` writes an approval from its console into the manifests, and applies it without a restart. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { lockText } from '../../helpers/console/approvals.ts'
import { group, manifest, startDev } from '../../helpers/dev-rig.ts'
import { stateless } from '../../helpers/mcp/wire.ts'
import { until } from '../../helpers/redis.ts'
import { approved, changed, other, startChanging } from '../../helpers/vmcp/pinning.ts'

t.setTimeout(120_000)

t.test(
  'dev: an approval in the console is written into the file and reloaded by the running server',
  async (t) => {
    const backend = await startChanging(t, [changed(approved, { description: 'Reads' }), other])
    const entry = manifest('MCPServerEntry', 'files', {
      groupRef: { name: 'g' },
      remoteUrl: backend.url,
      transport: 'streamable-http',
      allowPrivateEndpoint: true,
    })
    const lock = lockText({ tools: [approved, other] }).replace('kind: Backend', 'kind: MCPServerEntry')
    const server = manifest('VirtualMCPServer', 'v', {
      groupRef: { name: 'g' },
      incomingAuth: { type: 'anonymous' },
      config: { pinning: { onChanged: 'freeze', onNew: 'block', onRemoved: 'warn' } },
    })
    const { dev, folder, port } = await startDev(t, [group(), entry, lock.trim(), server])
    const line = await dev.waitFor(/console at http:\/\/127\.0\.0\.1:\d+\/#launch=\S+/)
    const { origin, hash } = new URL(/http:\S+/.exec(String(line))?.[0] ?? '')
    const headers = { 'x-gatehouse-launch': hash.replace('#launch=', '') }
    const get = async (path: string) =>
      (await (await fetch(`${origin}/api/v1/${path}`, { headers })).json()) as Record<string, never>
    const drift = async (): Promise<readonly { digest: string }[]> => (await get('pins'))['items'] ?? []
    await until(async () => (await drift()).length > 0)
    const described = async () => {
      return (await stateless(`http://127.0.0.1:${port}/mcp`, 'tools/list')).text
    }
    t.match(await described(), /"Reads a file"/, 'the approved text is listed')
    const [{ digest } = { digest: '' }] = await drift()
    const file = join(folder, 'manifests.yaml')
    const item = await get('pins/item?backend=files&kind=tool&name=read')
    t.match(item, { approval: { way: 'file', file } })
    const before = readFileSync(file, 'utf8')
    const approval = await fetch(`${origin}/api/v1/pins/approve`, {
      method: 'POST',
      headers: {
        ...headers,
        origin,
        'content-type': 'application/json',
        'x-gatehouse-csrf': String((await get('me'))['csrf']),
      },
      body: JSON.stringify({
        backend: 'files',
        kind: 'tool',
        name: 'read',
        state: 'changed',
        digest,
        approvedDigest: item['approvedDigest'],
      }),
    })
    t.match(await approval.json(), { file })
    t.equal(readFileSync(file, 'utf8'), before.replace('description: Reads a file', 'description: Reads'))
    await until(async () => (await drift()).length === 0)
    t.match(await described(), /"Reads"/, 'the new text is listed')
    t.notMatch(dev.output(), /restart/i)
  },
)
