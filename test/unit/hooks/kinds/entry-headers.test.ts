/** Headers of MCPServerEntries: their variables in the pod, and entries that are excluded. */
import t from 'tap'
import { configOf, door, statusOf } from '../../../hooks/rendered.ts'
import { entry } from '../../../hooks/resources.ts'

t.test('headerForward: each entry has its own variables, and ambiguous names are excluded', async (t) => {
  const headers = {
    headerForward: {
      addHeadersFromSecret: [{ headerName: 'X-Key', valueSecretRef: { name: 'tokens', key: 'api' } }],
    },
  }
  const w = door({}, entry('a-b', headers), entry('a.b'), entry('c', headers))
  const names = (configOf(w)['backends'] as unknown as { name: string }[]).map(({ name }) => name)
  t.strictSame(names, ['a.b', 'c'], 'a-b would share its headers with a.b')
  const { discoveredBackends } = statusOf(w) as unknown as {
    discoveredBackends: { name: string; message?: string }[]
  }
  t.match(
    discoveredBackends.find(({ name }) => name === 'a-b'),
    { status: 'unavailable', message: /punctuation/ },
  )
})

t.test('headerForward: only the invalid entry is excluded, whatever its status reports', async (t) => {
  const w = door({}, entry('good'), entry('bad'))
  const request = JSON.parse(JSON.stringify(w.request('VirtualMCPServer', 'door'))) as {
    related: Record<string, Record<string, { spec: Record<string, unknown> }>>
  }
  const bad = request.related['MCPServerEntry.gatehouse.dev/v1beta1']?.['team/bad']
  t.ok(bad)
  for (const headerForward of [{ addHeadersFromSecret: ['x'] }, 5, { addPlaintextHeaders: { Host: 'x' } }]) {
    if (bad) bad.spec['headerForward'] = headerForward
    const { status } = w.hooks.byKind('VirtualMCPServer')?.sync(request) ?? {}
    t.match(status, {
      discoveredBackends: [
        {
          name: 'bad',
          status: 'unavailable',
          message: /MCPServerEntry bad is not valid: spec\.headerForward/,
        },
        { name: 'good' },
      ],
    })
    t.notMatch(status, { phase: 'Failed' })
  }
})
