/** The objects that local sessions declare for converted servers. */
import t from 'tap'
import { documentsOf } from '../../../runtime/toolkit/local/conversion.ts'
import type { Conversion } from '../../../runtime/toolkit/clients/index.ts'

const entrance = [
  {
    kind: 'VirtualMCPServer',
    metadata: { name: 'gatehouse' },
    spec: {
      config: {
        operational: { failureHandling: { healthCheckInterval: '60s', partialFailureMode: 'fail' } },
      },
    },
  },
  { kind: 'MCPGroup', metadata: { name: 'gatehouse' } },
]
const conversion = { members: [], entrance, secrets: { manifests: [] } } as unknown as Conversion

t.test('local documents: health checks are fast, and other settings stay', async (t) => {
  const [server, group] = documentsOf(conversion)
  t.strictSame(server?.spec?.['config'], {
    operational: {
      failureHandling: {
        healthCheckInterval: '3s',
        partialFailureMode: 'fail',
        healthCheckTimeout: '2s',
        unhealthyThreshold: 2,
      },
    },
  })
  t.equal(group, entrance[1])
})

t.test('local documents: the timeout of requests can be longer, for servers that start slowly', async (t) => {
  const [server] = documentsOf(conversion, { requestTimeout: '120s' })
  t.match(server, { spec: { config: { operational: { timeouts: { default: '120s' } } } } })
})
